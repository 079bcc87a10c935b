import Base
import Storage

extension CommandContext {
    func run(_ arguments: CommandArguments) async throws -> ExitCode {
        guard arguments.text == nil, let run = arguments.command.run else {
            Output.standard.write(arguments.text ?? "")
            return .success
        }
        do {
            return try await run(arguments, self)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    /// `true` if the result is for a terminal whose user has not refused colours.
    var printsColours: Bool {
        let isPlain = !(inputs.environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        return Output.standard.isTerminal && !isPlain
    }

    /// Prints the result of a command: one JSON object with `--json`, otherwise a text.
    func answer(_ text: @autoclosure () -> String, json write: (inout JSONLine) -> Void) {
        guard printsJSON else { return Output.standard.line(text()) }
        var line = JSONLine()
        write(&line)
        Output.standard.line(line.bytes)
    }
}
