//! Blocking work on a thread of its own: neither the bus nor a getter waits for a disk, a kernel file or the canary.

use futures::channel::oneshot;

/// Runs `work` and answers what it answers; none when it panicked.
pub async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name("work".into())
        .spawn(move || {
            // Nobody waits any more when the service ends: what was done is done.
            let _ = answer.send(work());
        })
        .ok()?;
    answered.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_back_and_a_panic_is_no_hang() {
        async_io::block_on(async {
            assert_eq!(apart(|| 7).await, Some(7));
            assert_eq!(apart(|| -> u8 { panic!("on purpose") }).await, None);
        });
    }
}
