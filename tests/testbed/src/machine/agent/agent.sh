# Runs what the host asks for, one command at a time; machine/protocol.rs has the other end and the framing.
#
# The request's words come quoted for bash, so that one line carries any argument, newlines included. Output goes
# straight to the port: a pipe with a reader would have to wait for every background process that inherits it.

exec 3<>/dev/virtio-ports/org.workloadguard.agent || exit 1

while IFS=' ' read -r token seconds quoted <&3; do
    eval "argv=($quoted)"
    printf '\036%s begin\n' "$token" >&3
    timeout --signal=KILL -- "$seconds" "${argv[@]}" </dev/null >&3 2>&1 3>&-
    printf '\036%s end %d\n' "$token" "$?" >&3
done
