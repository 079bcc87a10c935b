import Routes
import Telemetry

/// The commands, flags and values that a shell completes.
struct CompletionTable {
    /// The kind of value that follows a flag or a command.
    enum Value: Equatable {
        case file
        case choices([String])
        /// A value that the shell cannot know.
        case other
    }

    struct Flag {
        /// Without its dashes.
        let name: String
        let summary: String
        /// `nil` if the flag does not take one.
        var value: Value?
    }

    /// A word that can follow a command.
    struct Subcommand {
        let name: String
        let summary: String
    }

    /// A command, by the words that lead to it.
    struct Entry {
        let path: String
        var subcommands: [Subcommand] = []
        var flags: [Flag] = []
        var takesFile = false
    }

    let entries: [Entry]

    init(_ program: Command) {
        entries =
            program.tree.map { command in
                // The operands of help are the words of a command.
                Self.entry(
                    of: command,
                    subcommands: command.words == ["help"] ? program.subcommands : command.subcommands
                )
            } + Self.helpTopics(of: program)
    }

    /// The flags that take a value, in any command, with their dashes.
    var valuedFlags: [String] {
        Set(entries.flatMap(\.flags).filter { $0.value != nil }.map { "--\($0.name)" }).sorted()
    }

    var paths: [String] { entries.map(\.path).filter { !$0.isEmpty } }

    private static func entry(of command: Command, subcommands: [Command]) -> Entry {
        var flags = command.options.map { option in
            Flag(name: option.name, summary: option.summary.firstSentence, value: option.completed)
        }
        flags += command.settings.compactMap(Setting.named).filter { setting in
            !command.options.contains { $0.name == setting.name.rawValue }
        }.map { setting in
            Flag(name: setting.name.rawValue, summary: setting.summary.firstSentence, value: setting.completed)
        }
        flags.append(Flag(name: "help", summary: "print the help"))
        if command.readsConfiguration { flags.append(Flag(name: "no-switch", summary: Command.noSwitchSummary)) }
        if command.words.isEmpty { flags.append(Flag(name: "version", summary: "print the version")) }
        return Entry(
            path: command.words.joined(separator: " "),
            subcommands: subcommands.map(named),
            flags: flags,
            takesFile: command.operands.contains { $0.placeholder == "FILE" }
        )
    }

    /// The words after `help` that further words follow, such as `help grants`.
    private static func helpTopics(of program: Command) -> [Entry] {
        program.tree.dropFirst().filter { !$0.subcommands.isEmpty }.map { group in
            Entry(path: (["help"] + group.words).joined(separator: " "), subcommands: group.subcommands.map(named))
        }
    }

    private static func named(_ command: Command) -> Subcommand {
        Subcommand(name: command.words.last ?? "", summary: command.summary)
    }
}

extension OptionSpecification {
    fileprivate var completed: CompletionTable.Value? {
        switch kind {
        case .toggle: nil
        case .choice(let choices, _): .choices(choices)
        case .file, .database: .file
        case .seconds, .span, .number, .clientID, .user, .email, .connection, .label, .endpoint, .text: .other
        }
    }
}

extension Setting {
    fileprivate var completed: CompletionTable.Value? {
        switch name {
        case .logLevel: .choices(LogLevel.allCases.map(\.rawValue))
        case .linkByEmail: .choices(EmailLinking.allCases.map(\.rawValue))
        case .database: .file
        default: placeholder.map { $0 == "FILE" ? .file : .other }
        }
    }
}
