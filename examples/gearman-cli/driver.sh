#!/usr/bin/env bash
# Driver of the gearman command: driver.sh HOST PORT
#
# A shell cannot store a NUL, so words stay escaped until printf '%b' writes them.
host=$1 port=$2
here=$(mktemp -d) || exit
trap 'rm -rf "$here"' EXIT
export LC_ALL=C

# split_words cuts the line $1 into the array words, each as printf '%b' reads it. In the
# array times stands how often a word is repeated.
split_words() {
	local rest=$1 text
	words=() times=()
	local quoted='^[[:blank:]]*"(([^"\]|\\.)*)"(\*([0-9]+))?' bare='^[[:blank:]]*([^"[:blank:]][^[:blank:]]*)'
	while [[ $rest =~ $quoted ]] || [[ $rest =~ $bare ]]; do
		text=${BASH_REMATCH[1]}
		rest=${rest:${#BASH_REMATCH}}
		text=${text//\\\\/\\x5c}
		text=${text//\\0/\\x00}
		text=${text//\\\"/\\x22}
		words+=("$text") times+=("${BASH_REMATCH[4]}")
	done
}

# put writes word $1 as it is.
put() {
	if [[ -z ${times[$1]} ]]; then
		printf '%b' "${words[$1]}"
	elif [[ $(printf '%b' "${words[$1]}" | wc -c) = 1 ]]; then
		head -c "${times[$1]}" /dev/zero | tr '\0' "${words[$1]/\\x00/\\0}"
	else
		for ((i = 0; i < times[$1]; i++)); do printf '%b' "${words[$1]}"; done
	fi
}

# quote writes what it reads as a word of an answer.
quote() { od -An -v -tx1 | awk 'BEGIN { printf "\"" } { gsub(/ /, "\\x"); printf "%s", $0 } END { printf "\"" }'; }

# failed answers for a gearman that ended with status $1.
failed() {
	local said
	said=$(tr -d '\0' <"$here/stderr")
	case $said in
	*TIMEOUT* | *imeout*) printf 'error timed-out ' ;;
	*"ob failed"* | *WORK_FAIL*) printf 'error failed ' ;;
	*EXCEPTION*) printf 'error exception ' ;;
	*CONNECT* | *LOST* | *ERRNO* | *PIPE*) printf 'error connection ' ;;
	*ERROR*) printf 'error server ' ;;
	*) if [[ $1 = 1 && -z $said ]]; then printf 'error failed '; else printf 'error other '; fi ;;
	esac
	quote <"$here/stderr"
	echo
}

submit() {
	local args=(-f "$(put 1)") i background=
	for ((i = 3; i < ${#words[@]}; i++)); do
		case ${words[i]} in
		background) args+=(-b -v) background=1 ;;
		priority=high) args+=(-I) ;;
		priority=low) args+=(-L) ;;
		priority=normal) ;;
		unique=*) args+=(-u "$(printf '%b' "${words[i]#unique=}")") ;;
		timeout=*) args+=(-t "${words[i]#timeout=}000") ;;
		*) echo error unsupported && return ;;
		esac
	done
	put 2 | gearman -h "$host" -p "$port" "${args[@]}" >"$here/stdout" 2>"$here/stderr"
	local status=${PIPESTATUS[1]}
	# It ends with 0 also if it did not reach the server, or was refused.
	if [[ $status != 0 ]] || grep -q '^gearman: ' "$here/stderr"; then
		failed "$status"
		return
	fi
	if [[ $background ]]; then
		printf 'ok %s\n' "$(awk '{ print $NF }' "$here/stdout" "$here/stderr" | tail -n 1)"
	else
		printf 'ok ' && quote <"$here/stdout" && echo
	fi
}

work() {
	local args=() fn command
	for fn in ${words[1]//,/ }; do args+=(-f "$fn"); done
	case ${words[2]} in
	echo) command=(cat) ;;
	reverse) command=(perl -0777 -ne 'print scalar reverse') ;;
	empty) command=(sh -c 'cat >/dev/null') ;;
	fail) command=(sh -c 'cat >/dev/null; exit 1') ;;
	*) echo error unsupported && return ;;
	esac
	if [[ ${words[3]} = 0 || ${#words[@]} -gt 4 ]]; then
		echo error unsupported && return
	fi
	gearman -w -h "$host" -p "$port" -c "${words[3]}" "${args[@]}" -- "${command[@]}" >"$here/stdout" 2>"$here/stderr"
	local status=$?
	# That the command has failed is reported in the same way as that the server has gone.
	if [[ $status != 0 ]] || grep '^gearman: ' "$here/stderr" | grep -qv 'GEARMAN_UNKNOWN_STATE$'; then
		failed "$status"
	else
		echo ok "${words[3]}"
	fi
}

while IFS= read -r line; do
	split_words "$line"
	case ${words[0]} in
	submit) submit ;;
	work) work ;;
	*) echo error unsupported ;;
	esac
done
