extension CompletionTable {
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
