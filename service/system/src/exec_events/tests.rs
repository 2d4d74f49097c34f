//! With the kernel's own events. In a container there are none, and that is what is checked there.

use std::process::Command;
use std::time::Duration;

use futures_lite::future;

use super::*;

/// The group of this process is watched: what it starts is in it.
fn own_group() -> Vec<String> {
    vec![ProcFs::default().cgroup(std::process::id()).unwrap()]
}

/// `None`, with the reason printed, where the kernel gives no events.
fn open(rcvbuf: Option<usize>) -> Option<ExecEvents> {
    match ExecEvents::open(rcvbuf) {
        Ok(events) => Some(events),
        Err(why) => {
            assert!(!why.to_string().is_empty());
            eprintln!("no exec events here: {why}");
            None
        }
    }
}

async fn within(time: Duration, work: impl Future<Output = ()>) {
    future::or(work, async {
        Timer::after(time).await;
        panic!("not within {time:?}");
    })
    .await;
}

#[test]
fn an_exec_is_told_with_what_is_executed() {
    let Some(mut events) = open(None) else { return };
    let proc = ProcFs::default();
    let watched = own_group();
    let mut child = Command::new("sleep").arg("321").spawn().unwrap();
    async_io::block_on(within(Duration::from_secs(20), async {
        loop {
            let batch = events.next(&proc, &watched).await.unwrap();
            let found = batch.executed.iter().find(|p| p.id.pid == child.id());
            if let Some(found) = found {
                assert_eq!(*found.argv, ["sleep".into(), "321".into()]);
                assert_eq!(found.ppid, std::process::id());
                break;
            }
        }
    }));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_not_watched_is_not_looked_at() {
    let Some(mut events) = open(None) else { return };
    let proc = ProcFs::default();
    let mut child = Command::new("sleep").arg("321").spawn().unwrap();
    let batch = async_io::block_on(events.next(&proc, &["/no/such.slice".to_owned()])).unwrap();
    assert!(batch.executed.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn lost_events_are_noticed_and_counted_and_later_ones_are_told() {
    // Room for two or three events.
    let Some(mut events) = open(Some(2304)) else {
        return;
    };
    let proc = ProcFs::default();
    let watched = own_group();
    const RUNS: u64 = 40;
    for _ in 0..RUNS {
        assert!(Command::new("true").status().unwrap().success());
    }
    async_io::block_on(within(Duration::from_secs(20), async {
        let batch = events.next(&proc, &watched).await.unwrap();
        // Others execute programs meanwhile, too; none of ours is unaccounted for.
        assert!(batch.lost >= RUNS - 4, "{} of {RUNS} lost", batch.lost);
        let mut child = Command::new("sleep").arg("321").spawn().unwrap();
        loop {
            let batch = events.next(&proc, &watched).await.unwrap();
            if batch.executed.iter().any(|p| p.id.pid == child.id()) || batch.lost > 0 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }));
}

#[test]
fn waiting_can_be_given_up_without_losing_an_event() {
    let Some(mut events) = open(None) else { return };
    let proc = ProcFs::default();
    let watched = own_group();
    let mut child = Command::new("sleep").arg("321").spawn().unwrap();
    async_io::block_on(within(Duration::from_secs(20), async {
        let mut found = false;
        while !found {
            let batch = future::or(async { Some(events.next(&proc, &watched).await) }, async {
                Timer::after(Duration::from_millis(1)).await;
                None
            });
            if let Some(batch) = batch.await {
                let executed = batch.unwrap().executed;
                found = executed.iter().any(|p| p.id.pid == child.id());
            }
        }
    }));
    child.kill().unwrap();
    child.wait().unwrap();
}
