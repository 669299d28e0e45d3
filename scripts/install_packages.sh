#!/bin/sh
# Install a program that some tests use: install_packages.sh NAME PACKAGE...  (Debian packages)
#
# Where that is not possible this says why, and the tests of the program are skipped; if CI is set
# it fails. Another package manager at work is waited for, up to PACKAGES_WAIT seconds: apt-get waits
# for the lock of dpkg by itself, but not for those of its lists and of its archive.
name=$1
wait=${PACKAGES_WAIT:-120}
shift
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

give_up() {
    echo "$name cannot be installed: $1." >&2
    test -z "$CI" || exit 1
    echo "Its tests will be skipped." >&2
    exit 0
}

install() {
    apt-get update -qq && apt-get install -qq -y -o DPkg::Lock::Timeout="$wait" "$@"
}

test "$(id -u)" = 0 || give_up "only root can install packages"
command -v apt-get >/dev/null || give_up "there is no apt-get"
end=$(($(date +%s) + wait))
until output=$(install "$@" 2>&1); do
    case $output in
    *"Could not get lock"*) test "$(date +%s)" -lt "$end" || give_up "another package manager is at work" ;;
    *) give_up "$(echo "$output" | tail -n 1 | sed 's/[.?]*$//')" ;;
    esac
    sleep 1
done
