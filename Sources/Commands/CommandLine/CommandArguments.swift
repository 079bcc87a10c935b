package import Worker

extension CommandSpecification {
    /// Parses the arguments that follow the program's name.
    package func parse(
        _ arguments: [String],
        documents: DocumentFolder = .sources
    ) throws(UsageError) -> Invocation {
        let scanner = ArgumentScanner(arguments, program: self)
        if scanner.asksForHelp {
            return try helpInvocation(about: scanner.words, documents: documents)
        }
        if scanner.words.first == "help", !scanner.flags.contains(where: { $0.name == "format" }) {
            return try helpInvocation(about: Array(scanner.words.dropFirst()), documents: documents)
        }
        if scanner.asksForVersion {
            let version = ShowVersion(isJSON: scanner.flags.contains { $0.name == "json" })
            return Invocation(command: version, flags: [], printsJSON: false)
        }
        let (command, operands) = descend(scanner.words)
        var problems = scanner.problems
        guard problems.isEmpty else { throw UsageError(problems: problems, invocation: command.invocation) }
        problems += command.problemsOfOperands(operands)
        let (options, flags) = command.sort(scanner.flags, problems: &problems)
        guard problems.isEmpty, let make = command.make else {
            throw UsageError(problems: problems, invocation: command.invocation)
        }
        let arguments = CommandArguments(invocation: command.invocation, operands: operands, options: options)
        return Invocation(command: try make(arguments), flags: flags, printsJSON: arguments.has("json"))
    }

    /// Follows the words down the tree as far as they name commands; the remaining words are operands.
    private func descend(_ words: [String]) -> (CommandSpecification, operands: [String]) {
        var command = self
        var rest = words[...]
        while let word = rest.first, let next = command.subcommands.first(where: { $0.words.last == word }) {
            command = next
            rest.removeFirst()
        }
        return (command, Array(rest))
    }

    /// Returns the help, whatever operands and flags surround the request for it.
    private func helpInvocation(
        about words: [String],
        documents: DocumentFolder
    ) throws(UsageError) -> Invocation {
        let (command, rest) = descend(words)
        if let word = rest.first, !command.subcommands.isEmpty {
            throw UsageError(problems: [command.unknownSubcommand(word)], invocation: command.invocation)
        }
        return Invocation(command: ShowHelp(text: command.helpText(documents: documents)), flags: [], printsJSON: false)
    }

    private func unknownSubcommand(_ word: String) -> String {
        let names = subcommands.compactMap(\.words.last)
        let nearest = NameSuggestion.of(word, among: names)
        let hint = nearest.map { "did you mean \($0)?" } ?? "the commands are \(names.joined(separator: ", "))"
        return "unknown command \(DisplayedText((words + [word]).joined(separator: " "))); \(hint)"
    }

    private func problemsOfOperands(_ given: [String]) -> [String] {
        if let word = given.first, !subcommands.isEmpty { return [unknownSubcommand(word)] }
        guard make != nil else {
            let names = subcommands.compactMap(\.words.last)
            return ["'\(invocation)' needs one of \(names.joined(separator: ", "))"]
        }
        // Surplus operands are counted and not shown: one of them may be a token in an unknown form.
        guard (operands.count { !$0.isOptional }...operands.count).contains(given.count) else {
            let wanted = operands.isEmpty ? "no operand" : operands.map(\.placeholder).joined(separator: " ")
            return ["'\(invocation)' takes \(wanted); \(given.count) operands were given"]
        }
        return zip(operands, given).compactMap { operand, value in operand.problem(with: value) }
    }

    /// Splits the flags into the command's own and settings; the command's own flag of the same name wins.
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

/// The arguments of a command, each checked against its specification.
package struct CommandArguments: Sendable {
    /// The command as it is typed.
    let invocation: String
    let operands: [String]
    /// The values of the command's own flags; empty for a toggle.
    let options: [String: String]

    /// The only operand of the commands that need one.
    var operand: String { operands.first ?? "" }

    subscript(option: String) -> String? { options[option] }

    func has(_ option: String) -> Bool { options[option] != nil }

    func seconds(_ option: String, otherwise defaultValue: Int) -> Duration {
        .seconds(options[option].flatMap { Int($0) } ?? defaultValue)
    }

    /// Returns the values of flags that the command needs; `purpose` ends the message about a missing one.
    func needed(_ names: String..., purpose: String = "") throws(UsageError) -> [String] {
        let missing = names.filter { !has($0) }
        guard missing.isEmpty else { throw refusal(missing.map { "--\($0) is needed\(purpose)" }) }
        return names.compactMap { self[$0] }
    }

    /// Returns the error about arguments that are valid one by one but not together.
    func refusal(_ problems: [String]) -> UsageError { UsageError(problems: problems, invocation: invocation) }
}

/// A parsed command line: the command, and the settings that were given with it.
package struct Invocation: Sendable {
    package let command: any Command
    package let flags: [ConfigurationInputs.Flag]
    /// `true` for the form of results that `--json` asks for.
    package let printsJSON: Bool

    /// `true` for the daemon or a single pass.
    package var runsWorker: Bool { command is RunWorker }
    /// The text of a command that only prints one.
    package var text: String? { (command as? any TextCommand)?.text }
}

/// The problems of a command line, and the command whose help explains it.
package struct UsageError: Error, Equatable, Sendable {
    let problems: [String]
    /// The command whose help to name, as it is typed.
    let invocation: String

    package var exitCode: ExitCode { .usage }
}

extension UsageError: CustomStringConvertible {
    /// One line for each problem, and one that points to the help; without secrets.
    package var description: String {
        (problems + ["'\(invocation) --help' explains it."]).joined(separator: "\n")
    }
}

/// The words that the process was started with.
package enum ProcessArguments {
    /// The arguments after the program's name.
    ///
    /// Swift's runtime looks for them next to the environment on the stack, and does not find them if a preloaded
    /// library moved the environment before the program began. The program would then run as the daemon instead of the
    /// command, so the kernel is asked (https://man7.org/linux/man-pages/man5/proc_pid_cmdline.5.html).
    package static func read() throws -> [String] {
        let known = CommandLine.arguments
        guard known.isEmpty else { return Array(known.dropFirst()) }
        let words = try FileReader.system.read("/proc/self/cmdline").split(
            separator: 0,
            omittingEmptySubsequences: false
        )
        // Each word ends in a zero, so nothing follows the last one.
        return words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
    }
}
