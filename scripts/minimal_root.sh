#!/usr/bin/env bash
# Does a clean clone run on a Debian that has nothing but Python and make?
#
#   scripts/minimal_root.sh [TARGET...]     as root; by default: demo test
#
# Makes a root folder with mmdebstrap, clones HEAD into it, and runs each target of make there, in
# a mount and process namespace of its own, without variables but those below. How the host reaches
# packages (sources and proxies of apt, settings of pip, certificates, DNS) is read from the host
# each time. SUITE chooses another Debian, and with ROOT=FOLDER the folder is kept and used again.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
targets=("${@:-demo}")
[ $# -gt 0 ] || targets=(demo test)
packages=python3,python3-venv,make

[ "$(id -u)" = 0 ] || { echo "Run it as root: it makes a root folder and enters it." >&2; exit 1; }
command -v mmdebstrap >/dev/null || apt-get install -qq -y mmdebstrap >/dev/null

if [ -n "${ROOT:-}" ]; then root=$ROOT; else
    root=$(mktemp -d)
    trap 'rm -rf --one-file-system "$root"' EXIT
fi

# The Debian archives that the host knows.
archives() {
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Origin: Debian' \
        'Created-By: Packages' | sort -u | grep . ||
        { echo "apt knows no Debian archive: run 'apt-get update' first." >&2; exit 1; }
}

# A path that a setting names exists in the root too: files are copied, folders are shown, but those
# of /etc are copied, as packages write there. A folder that is an index of packages (.../simple)
# refers to the files beside it.
declare -A folders=()
bring() {
    local path
    path=$(realpath -m -s "$1")
    case $path in
    /etc/*) if [ -d "$path" ]; then mkdir -p "$root$path" && cp -rL --remove-destination "$path/." "$root$path/"; fi ;;
    *) if [ -d "$path" ]; then folders[${path%/simple}]=1; fi ;;
    esac
    if [ -f "$path" ]; then install -D -m 644 "$path" "$root$path"; fi
}

if [ ! -x "$root/usr/bin/make" ]; then
    settings=$(mktemp)
    apt-config dump Acquire | grep -i -E 'proxy|timeout|retries|cainfo' >"$settings" || true
    suite=${SUITE:-$(archives | awk 'NR == 1 {sub("-.*", "", $3); print $3}')}
    archives | mmdebstrap --quiet --variant=minbase --include="$packages" --aptopt="$settings" "$suite" "$root" -
    rm "$settings"
fi
rm -rf "$root/root/privatest"
git -c safe.directory='*' clone --quiet --depth 1 "file://$here" "$root/root/privatest"

bring /etc/resolv.conf
bring /etc/hosts
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [ -f "$file" ] || continue
    install -D -m 644 "$file" "$root${file/#$HOME//root}"
    for path in $(grep -o '/[^ ,;:]*' "$file"); do bring "$path"; done
done
kept=()
while IFS='=' read -r -d '' name value; do
    case $name in
    PIP_* | *_proxy | *_PROXY | SSL_CERT_* | *_CA_BUNDLE) kept+=("$name=$value"); bring "$value" ;;
    esac
done < <(env -0)

export root folders_shown="${!folders[*]}"
enter() {
    unshare --mount --pid --fork --kill-child bash -euc '
        for folder in $folders_shown; do
            mkdir -p "$root$folder" && mount --bind -o ro "$folder" "$root$folder"
        done
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/dev" -o mode=755
        for node in null zero full random urandom tty; do
            touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"
        done
        ln -s /proc/self/fd "$root/dev/fd"
        mkdir "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm"
        exec chroot "$root" "$@"' enter "$@"
}

for target in "${targets[@]}"; do
    began=$SECONDS
    enter /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${kept[@]}" \
        make -C /root/privatest --no-print-directory "$target"
    echo "make $target: $((SECONDS - began)) s in a minimal root."
done
