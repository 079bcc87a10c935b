import Base
import Storage
package import Worker

/// A command of the program: its arguments, its help, and what it does.
///
///     struct ShowUser: Command {
///         static let specification = CommandSpecification(words: ["users", "show"], …)
///         private let user: String
///
///         init(_ arguments: CommandArguments) { user = arguments.operand }
///         func run(in context: CommandContext) async throws -> ExitCode { … }
///     }
///
/// A new command is added to the list in ``CommandSpecification/program``.
package protocol Command: Sendable {
    static var specification: CommandSpecification { get }
    /// Takes the arguments, each of which fits the specification.
    init(_ arguments: CommandArguments) throws(UsageError)
    func run(in context: CommandContext) async throws -> ExitCode
}

extension Command {
    typealias Example = CommandSpecification.Example

    /// The command as an entry of the list of commands.
    static var entry: CommandSpecification {
        var entry = specification
        entry.make = { arguments throws(UsageError) in try Self(arguments) }
        return entry
    }
}

/// A command that prints a text, and needs neither the configuration nor a thread for it.
protocol TextCommand: Command {
    /// The text with its last line break.
    var text: String { get }
}

extension TextCommand {
    func run(in context: CommandContext) -> ExitCode {
        Output.standard.write(text)
        return .success
    }
}

extension CommandContext {
    package func run(_ command: any Command) async throws -> ExitCode {
        do {
            return try await command.run(in: self)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    /// Prints the result of a command: one JSON object with `--json`, otherwise a text.
    func answer(_ text: @autoclosure () -> String, json write: (inout JSONLine) -> Void) {
        guard printsJSON else { return Output.standard.line(text()) }
        var line = JSONLine()
        write(&line)
        Output.standard.line(line.bytes)
    }

    /// Creates the report of this process to the workers on the database.
    func heartbeat(in store: any Store, of vault: TokenVault) -> WorkerHeartbeat {
        WorkerHeartbeat(store: store, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
    }
}
