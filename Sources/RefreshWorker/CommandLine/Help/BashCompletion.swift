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
