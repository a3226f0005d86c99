#!/usr/bin/env bash
# Runs the steps of Dockerfile in a clean Debian root made by debootstrap, where no container engine is at hand; then, as its user
# and without a network, the phantom, a BIDS participant, the group level, and tests marked core. Needs root, debootstrap and unshare.
#   sudo pipelines/packaging/rehearse.sh ROOT     (ROOT: a folder that does not exist yet)
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
root=${1:?name a folder for the root file system}
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
recipe=$here/Dockerfile
[ ! -e "$root" ] || { echo "$root exists: name a new folder"; exit 2; }

mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } | sed -n 's/^\(deb\|URIs:\) *\(http[^ ]*\).*/\2/p' | sed -n 1p)
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"}
for file in /etc/apt/apt.conf.d/* /etc/pip.conf /etc/resolv.conf; do  # how this machine reaches its registries
    [ -f "$file" ] && install -D "$file" "$root$file"
done
mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"  # as engines do
for folder in ${REHEARSE_BIND:-}; do mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder"; done
finish() { for at in ${REHEARSE_BIND:-} /dev/shm /dev /proc; do umount -l "$root$at" || true; done; }
trap finish EXIT

# ENV, COPY and RUN of the recipe, in its order
joined=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$recipe")
variables=($(sed -n 's/^ENV //p' <<<"$joined"))
machine=($(env | grep -E '^(PIP_|https?_proxy=|HTTPS?_PROXY=)' || true))
trusted=/etc/ssl/certs/ca-certificates.crt  # of this machine, beside those that the recipe installs
[ -f "$trusted" ] && install -D "$trusted" "$root/etc/ssl/rehearsal.crt" && machine+=(PIP_CERT=/etc/ssl/rehearsal.crt)
inside() { env -i HOME=/root "${variables[@]}" "${machine[@]}" "$(command -v chroot)" "$root" sh -c "$1"; }
while read -r step rest; do
    case $step in
        COPY) read -ra names <<<"$rest"
              target=${names[-1]} ; unset 'names[-1]'
              mkdir -p "$root$(dirname "${target}x")"
              for name in "${names[@]}"; do cp -r "$project/$name" "$root$target"; done ;;
        RUN) inside "$rest" ;;
    esac
done <<<"$joined"

user=$(sed -n 's/^USER //p' "$recipe")
mkdir "$root/home/$user/project"
git -C "$project" archive HEAD | tar -x -C "$root/home/$user/project"
inside "python3 -m venv /opt/tests && /opt/tests/bin/pip install --quiet '/home/$user/project[test]'"
inside "chown -R $user /home/$user"
as_user() { env -i HOME="/home/$user" "${variables[@]}" unshare --net sh -c 'ip link set lo up; exec "$@"' _ "$(command -v chroot)" --userspec="$user" "$root" sh -c "work=~/rehearsal; mkdir -p \$work && cd \$work && $1"; }
as_user 'mvpa-gamp decode --phantom --phantom-shape 20 24 16 --pairs face:house --methods gamp-sbg-lr svm --out $work/phantom && test -s $work/phantom/index.html'
as_user "cd /home/$user/project/tests && /opt/tests/bin/python -c 'import sys; from pathlib import Path; from bids_tree import write_tree; write_tree(Path(sys.argv[1]))' \$work/bids"
as_user 'mvpa-gamp $work/bids $work/out participant --contrasts face:house --methods gamp-bg-lr && mvpa-gamp $work/bids $work/out group && test -s $work/out/index.html'
as_user "cd /home/$user/project && /opt/tests/bin/python -m pytest -m core"
echo "rehearsed: $recipe"
