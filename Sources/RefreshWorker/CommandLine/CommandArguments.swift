import Base
import Storage

/// A parsed command line: a command, its arguments, each checked against its specification, and the settings that were
/// given with it.
struct CommandArguments: Sendable {
    let command: Command
    var operands: [String] = []
    /// The values of the command's own flags, which are empty for a toggle.
    var options: [String: String] = [:]
    var flags: [ConfigurationInputs.Flag] = []
    /// The help that is asked for instead.
    var help: String?
    /// `true` if root must not continue as the service's user.
    var staysRoot = false

    /// The text of a command that only prints one, or the help of any.
    var text: String? { help ?? command.text?(self) }
    /// `true` for the daemon or a single pass.
    var runsWorker: Bool { command.words.isEmpty && text == nil }
    /// `true` unless the command does without settings.
    var readsConfiguration: Bool { text == nil && command.readsConfiguration }
    /// `true` for the form of results that `--json` asks for.
    var printsJSON: Bool { options["json"] != nil }

    /// `true` if a line says first as whom the command runs and with which settings.
    ///
    /// A log always has it. A person at a terminal needs it only if the worker starts, or if the user matters: for a
    /// file that the command line names.
    func needsAnnouncement(onTerminal isTerminal: Bool) -> Bool {
        if !isTerminal || runsWorker { return true }
        return command.operands.contains(where: \.isFile) || command.options.contains { $0.isFile && has($0.name) }
    }

    /// The only operand of the commands that need one.
    var operand: String { operands.first ?? "" }

    /// The value of a flag of the command, or `nil` if it is not given.
    subscript(option: String) -> String? {
        precondition(command.options.contains { $0.name == option }, "--\(option) is not a flag of this command")
        return options[option]
    }

    func has(_ option: String) -> Bool { self[option] != nil }

    /// The connection that `--connection` names, or the default one.
    var connection: ConnectionID { self["connection"].flatMap { ConnectionID($0) } ?? .default }

    func seconds(_ option: String) -> Duration { .seconds(Int(needed(option)) ?? 0) }

    /// Subtracts the time span of a flag from now, or returns `nil` if the flag is not given.
    func instant(_ option: String, before now: Timestamp) throws(InputError) -> Timestamp? {
        guard let span = self[option] else { return nil }
        return now - (try SettingValue.span(span))
    }

    /// Returns the value of a flag that the command needs, or that has a default.
    func needed(_ option: String) -> String { self[option] ?? "" }

    /// Returns the error about arguments that are valid one by one but not together.
    func refusal(_ problems: [String]) -> CommandError { CommandError(usage: problems, of: command.invocation) }
}

extension CommandError {
    /// Reports the problems of a command line, a line each, and the command whose help explains it, without secrets.
    init(usage problems: [String], of invocation: String) {
        self.init(.usage, (problems + ["'\(invocation) --help' explains it."]).joined(separator: "\n"))
    }
}
