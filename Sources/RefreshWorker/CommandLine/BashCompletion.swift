extension CompletionTable {
    /// The completions for bash.
    ///
    /// They need bash alone, and not the package bash-completion, which only finds the file.
    var bash: String {
        """
        # Completion of refresh-worker for bash. Written by: refresh-worker help --format bash
        _refresh_worker() {
            local current=${COMP_WORDS[COMP_CWORD]} command='' flag='' offered='' files='' word i
            for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                # bash splits --flag=value at the equals sign.
                if [[ $word == = ]]; then continue; fi
                if [[ -n $flag ]]; then
                    flag=''
                    continue
                fi
                case $word in
                \(valuedFlags.joined(separator: " | "))) flag=$word ;;
                -*) ;;
                *)
                    case "${command:+$command }$word" in
                    \(paths.map { "'\($0)'" }.joined(separator: " | "))) command="${command:+$command }$word" ;;
                    esac
                    ;;
                esac
            done
            if [[ $current == = ]]; then current=''; fi
            if [[ -n $flag ]]; then
                case "$command $flag" in
        \(valueCases(file: "files=yes", choices: { "offered='\($0)'" }))
                esac
            elif [[ $current == -* ]]; then
                case $command in
        \(flagCases)
                esac
            else
                case $command in
        \(operandCases)
                esac
            fi
            COMPREPLY=()
            if [[ -n $files ]]; then
                # It fails only outside of a completion, in a test.
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            else
                mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$current")
            fi
        }
        complete -F _refresh_worker refresh-worker

        """
    }

    private var flagCases: String {
        entries.map { entry in
            "        '\(entry.path)') offered='\(entry.flags.map { "--\($0.name)" }.joined(separator: " "))' ;;"
        }.joined(separator: "\n")
    }

    private var operandCases: String {
        entries.compactMap { entry in
            let names = entry.subcommands.map(\.name).joined(separator: " ")
            let action = entry.takesFile ? "files=yes" : "offered='\(names)'"
            return entry.takesFile || !names.isEmpty ? "        '\(entry.path)') \(action) ;;" : nil
        }.joined(separator: "\n")
    }

    /// Returns the branches of a `case` over a command and one of its flags, for bash and zsh.
    func valueCases(file: String, choices: (String) -> String) -> String {
        entries.flatMap { entry in
            entry.flags.compactMap { flag -> String? in
                switch flag.value {
                case .file: "        '\(entry.path) --\(flag.name)') \(file) ;;"
                case .choices(let words):
                    "        '\(entry.path) --\(flag.name)') \(choices(words.joined(separator: " "))) ;;"
                case .other, nil: nil
                }
            }
        }.joined(separator: "\n")
    }
}

extension CompletionTable {
    /// The completions for fish.
    var fish: String {
        """
        # Completion of refresh-worker for fish. Written by: refresh-worker help --format fish
        function __refresh_worker_at --description 'true if the words so far name this command'
            set -l command ''
            set -l flag ''
            for word in (commandline -opc)[2..]
                if test -n "$flag"
                    set flag ''
                    continue
                end
                switch $word
                    case \(valuedFlags.joined(separator: " "))
                        set flag $word
                    case '-*'
                    case '*'
                        set -l longer (string trim "$command $word")
                        if contains -- "$longer" \(paths.map { "'\($0)'" }.joined(separator: " "))
                            set command "$longer"
                        end
                end
            end
            test "$command" = "$argv[1]"
        end

        complete -c refresh-worker -f
        \(fishLines)

        """
    }

    private var fishLines: String { entries.flatMap(Self.fishLines).joined(separator: "\n") }

    private static func fishLines(_ entry: Entry) -> [String] {
        let start = "complete -c refresh-worker -n '__refresh_worker_at \"\(entry.path)\"'"
        let commands = entry.subcommands.map { "\(start) -a \($0.name) -d \(quoted($0.summary))" }
        let flags = entry.flags.map { flag in
            let value =
                switch flag.value {
                case .file: " -r -F"
                case .choices(let words): " -x -a \(quoted(words.joined(separator: " ")))"
                case .other: " -x"
                case nil: ""
                }
            return "\(start) -l \(flag.name)\(value) -d \(quoted(flag.summary))"
        }
        return commands + flags + (entry.takesFile ? ["\(start) -F"] : [])
    }

    private static func quoted(_ text: String) -> String {
        "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
    }
}

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
            let commands = entry.subcommands.map { Self.described($0.name, $0.summary) }.joined(separator: " ")
            let flags = entry.flags.map { Self.described("--\($0.name)", $0.summary) }.joined(separator: " ")
            return ["'\(entry.path)')", "    commands=(\(commands))", "    flags=(\(flags))"]
                + (entry.takesFile ? ["    [[ $current == -* ]] || _files"] : []) + ["    ;;"]
        }.map { "    " + $0 }.joined(separator: "\n")
    }

    /// Returns a quoted `name:description`.
    private static func described(_ name: String, _ summary: String) -> String {
        "'\(name):\(summary.replacing("'", with: "'\\''"))'"
    }
}
