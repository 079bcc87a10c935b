extension CompletionTable {
    /// The completions for zsh, as a function that compinit loads.
    var zsh: String {
        """
        #compdef refresh-worker
        # Completion of refresh-worker for zsh. Written by: refresh-worker help --format zsh
        _refresh_worker() {
            local current=${words[CURRENT]} command='' flag='' word
            local -a commands flags
            for word in "${(@)words[2,CURRENT-1]}"; do
                if [[ -n $flag ]]; then
                    flag=''
                    continue
                fi
                case $word in
                \(valuedFlags.joined(separator: "|"))) flag=$word ;;
                -*) ;;
                *)
                    case "${command:+$command }$word" in
                    \(paths.map { "'\($0)'" }.joined(separator: "|"))) command="${command:+$command }$word" ;;
                    esac
                    ;;
                esac
            done
            if [[ -z $flag && $current == --*=* ]]; then
                flag=${current%%=*}
                compset -P '*='
            fi
            if [[ -n $flag ]]; then
                case "$command $flag" in
        \(valueCases(file: "_files", choices: { "compadd -- \($0)" }))
                esac
                return
            fi
            case $command in
        \(zshBranches)
            esac
            if [[ $current == -* ]]; then
                _describe -o -t options flag flags
            elif (( $#commands )); then
                _describe -t commands command commands
            fi
        }
        _refresh_worker "$@"

        """
    }

    private var zshBranches: String {
        entries.flatMap { entry in
            let commands = entry.subcommands.map { Self.described($0.name, summary: $0.summary) }.joined(separator: " ")
            let flags = entry.flags.map { Self.described("--\($0.name)", summary: $0.summary) }.joined(separator: " ")
            return ["'\(entry.path)')", "    commands=(\(commands))", "    flags=(\(flags))"]
                + (entry.takesFile ? ["    [[ $current == -* ]] || _files"] : []) + ["    ;;"]
        }.map { "    " + $0 }.joined(separator: "\n")
    }

    /// Returns a quoted `name:description`.
    private static func described(_ name: String, summary: String) -> String {
        "'\(name):\(summary.replacing("'", with: "'\\''"))'"
    }
}
