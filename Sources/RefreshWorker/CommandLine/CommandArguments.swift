import Base

extension Command {
    /// Parses the arguments that follow the program's name.
    func parse(
        _ arguments: [String],
        documents: DocumentFolder = .sources
    ) throws(CommandError) -> CommandArguments {
        let scanner = ArgumentScanner(arguments, program: self)
        if scanner.asksForHelp {
            return try help(about: scanner.words, documents: documents)
        }
        if scanner.words.first == "help", !scanner.flags.contains(where: { $0.name == "format" }) {
            return try help(about: Array(scanner.words.dropFirst()), documents: documents)
        }
        if scanner.asksForVersion {
            let options = scanner.flags.contains { $0.name == "json" } ? ["json": ""] : [:]
            return CommandArguments(command: .showVersion, options: options)
        }
        let (command, operands) = descend(scanner.words)
        var problems = scanner.problems
        guard problems.isEmpty else { throw CommandError(usage: problems, of: command.invocation) }
        problems += command.problemsOfOperands(operands)
        var (options, flags) = command.sort(scanner.flags, problems: &problems)
        for option in command.options where options[option.name] == nil { options[option.name] = option.standard }
        if problems.isEmpty { problems = command.options.compactMap { options[$0.name] == nil ? $0.missing : nil } }
        let arguments = CommandArguments(
            command: command,
            operands: operands,
            options: options,
            flags: flags,
            staysRoot: scanner.staysRoot
        )
        guard problems.isEmpty else { throw arguments.refusal(problems) }
        try command.check(arguments)
        return arguments
    }

    /// Follows the words down the tree as far as they name commands, and returns the remaining ones as operands.
    private func descend(_ words: [String]) -> (Command, operands: [String]) {
        var command = self
        var rest = words[...]
        while let word = rest.first, let next = command.subcommands.first(where: { $0.words.last == word }) {
            command = next
            rest.removeFirst()
        }
        return (command, Array(rest))
    }

    /// Returns the help, whatever operands and flags surround the request for it.
    private func help(
        about words: [String],
        documents: DocumentFolder
    ) throws(CommandError) -> CommandArguments {
        let (command, rest) = descend(words)
        if let word = rest.first, !command.subcommands.isEmpty {
            throw CommandError(usage: [command.unknownSubcommand(word)], of: command.invocation)
        }
        return CommandArguments(command: command, help: command.helpText(documents: documents))
    }

    private func unknownSubcommand(_ word: String) -> String {
        let names = subcommands.compactMap(\.words.last)
        let nearest = word.nearest(among: names)
        let hint = nearest.map { "did you mean \($0)?" } ?? "the commands are \(names.joined(separator: ", "))"
        return "unknown command \(DisplayedText((words + [word]).joined(separator: " "))); \(hint)"
    }

    private func problemsOfOperands(_ given: [String]) -> [String] {
        if let word = given.first, !subcommands.isEmpty { return [unknownSubcommand(word)] }
        guard !isGroup else {
            let names = subcommands.compactMap(\.words.last)
            return ["'\(invocation)' needs one of \(names.joined(separator: ", "))"]
        }
        // Surplus operands are counted and not shown: one of them might be a token in an unknown form.
        guard (operands.count { !$0.isOptional }...operands.count).contains(given.count) else {
            let wanted = operands.isEmpty ? "no operand" : operands.map(\.placeholder).joined(separator: " ")
            return ["'\(invocation)' takes \(wanted); \(given.count) operands were given"]
        }
        return zip(operands, given).compactMap { operand, value in operand.problem(with: value) }
    }

    /// Splits the flags into the command's own and settings.
    ///
    /// If both have the same name, it is the command's own flag.
    private func sort(
        _ flags: [(name: String, value: String?)],
        problems: inout [String]
    ) -> (options: [String: String], flags: [ConfigurationInputs.Flag]) {
        var chosen: [String: String] = [:]
        var settings: [ConfigurationInputs.Flag] = []
        for flag in flags {
            if let option = options.first(where: { $0.name == flag.name }) {
                if let problem = option.problem(with: flag.value ?? "") {
                    problems.append(problem)
                }
                chosen[flag.name] = flag.value ?? ""
            } else if let name = Setting.Name(rawValue: flag.name), accepts(name) {
                settings.append((name, flag.value ?? "yes"))
            } else {
                problems.append("--\(flag.name) does not belong to '\(invocation)'")
            }
        }
        return (chosen, settings)
    }

    /// `true` if the command takes the setting.
    ///
    /// Every command takes all of them, except that only the worker takes `run-once`.
    private func accepts(_ name: Setting.Name) -> Bool {
        name != .runOnce || settings.contains(.runOnce)
    }
}

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

    /// The only operand of the commands that need one.
    var operand: String { operands.first ?? "" }

    /// The value of a flag of the command, or `nil` if it is not given.
    subscript(option: String) -> String? {
        precondition(command.options.contains { $0.name == option }, "--\(option) is not a flag of this command")
        return options[option]
    }

    func has(_ option: String) -> Bool { self[option] != nil }

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

extension CommandLine {
    /// The arguments after the program's name.
    ///
    /// Swift's runtime looks for them next to the environment on the stack, and does not find them if a preloaded
    /// library moved the environment before the program began. The program would then run as the daemon instead of the
    /// command, so the kernel is asked (https://man7.org/linux/man-pages/man5/proc_pid_cmdline.5.html).
    static func words() throws -> [String] {
        guard arguments.isEmpty else { return Array(arguments.dropFirst()) }
        let words = try FileReader.system.read("/proc/self/cmdline").split(
            separator: 0,
            omittingEmptySubsequences: false
        )
        // Each word ends in a zero, so nothing follows the last one.
        return words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
    }
}
