import Base

extension Command {
    /// Parses the arguments that follow the program's name. A help is laid out for this width.
    func parse(
        _ arguments: [String],
        documents: DocumentFolder = .sources,
        width: Int = HelpPage.usualWidth
    ) throws(CommandError) -> CommandArguments {
        let scanner = ArgumentScanner(arguments, program: self)
        if scanner.asksForHelp {
            return try help(about: scanner.words, documents: documents, width: width)
        }
        if scanner.words.first == "help", !scanner.flags.contains(where: { $0.name == "format" }) {
            return try help(about: Array(scanner.words.dropFirst()), documents: documents, width: width)
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
        documents: DocumentFolder,
        width: Int
    ) throws(CommandError) -> CommandArguments {
        let (command, rest) = descend(words)
        if let word = rest.first, !command.subcommands.isEmpty {
            throw CommandError(usage: [command.unknownSubcommand(word)], of: command.invocation)
        }
        return CommandArguments(command: command, help: command.helpText(documents: documents, width: width))
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
            return ["'\(invocation)' takes \(wanted); \(given.count.counted("operand")) given"]
        }
        return zip(operands, given).compactMap { operand, value in operand.problem(with: value) }
    }

    /// Splits the flags into the command's own and settings.
    ///
    /// If both have the same name, it is the command's own flag.
    private func sort(
        _ flags: [ArgumentScanner.Flag],
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
                settings.append(ConfigurationInputs.Flag(name: name, value: flag.value ?? "yes"))
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
