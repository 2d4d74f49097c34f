"""Types the beginning of a line into an interactive shell, presses TAB, and prints the line that came of it."""

import os
import pty
import select
import sys
import time

PROMPT = "READY> "
# Written so that the echo of the command is not the prompt.
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set bell-style none'; . /usr/share/bash-completion/bash_completion; PS1='REA''DY> '",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "fpath=(~/.local/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; "
        "unsetopt beep; PS1='REA''DY> '",
    ),
}


def main():
    shell, line = sys.argv[1:]
    argv, setup = SHELLS[shell]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execvp(argv[0], argv)
    seen = ""

    def read_until(text):
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            if time.monotonic() > end or not select.select([fd], [], [], end - time.monotonic())[0]:
                sys.exit(f"{shell} never showed {text!r}; it showed {seen!r}")
            try:
                data = os.read(fd, 4096)
            except OSError:
                data = b""
            if not data:
                sys.exit(f"{shell} ended; it showed {seen!r}")
            seen += data.decode(errors="replace")
        seen = seen.split(text, 1)[1]

    os.write(fd, setup.encode() + b"\n")
    read_until(PROMPT)
    # The line as it is then is the argument of an echo: Ctrl-A goes to its beginning.
    os.write(fd, line.encode() + b"\t")
    os.write(fd, b"\x01echo GOT'[' \x05 ']'TOG\n")
    read_until("\nGOT[ ")
    answer = seen
    while " ]TOG" not in answer:
        answer += os.read(fd, 4096).decode(errors="replace")
    print(answer.split(" ]TOG", 1)[0].strip())
    os.write(fd, b"exit\n")


if __name__ == "__main__":
    main()
