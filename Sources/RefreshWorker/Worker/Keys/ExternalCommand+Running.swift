import Base
import Crypto
import Glibc

/// Runs programs that get and print secrets.
extension ExternalCommand {
    struct Limits: Equatable, Sendable {
        /// The time until the program and its children are killed.
        var time: Duration = .seconds(30)
        /// The number of bytes that the program can print.
        var output = 131_072
    }

    /// Runs the program to its end, and returns what it printed.
    ///
    /// Blocks up to the limit of time. Whatever happens, neither the program nor a child of it is left afterwards,
    /// unless the child has left the program's process group.
    func run(
        reading input: Secret?,
        environment: [String: String],
        limits: Limits = Limits()
    ) throws(ExternalCommandError) -> Secret {
        var running: RunningCommand
        do throws(SystemCallError) {
            running = try RunningCommand(self, input: input, environment: environment)
        } catch {
            let isRefused = error.call == RunningCommand.startCall
            throw failure(isRefused ? .notStarted(code: error.code) : .systemCall(error))
        }
        if let reason = running.finish(within: limits) {
            throw failure(reason, errorOutput: ShownErrorOutput.text(of: running.errorOutput))
        }
        return running.output.withBytes { Secret(copying: $0) }
    }

    private func failure(_ reason: ExternalCommandError.Reason, errorOutput: String = "") -> ExternalCommandError {
        ExternalCommandError(program: program, reason: reason, errorOutput: errorOutput)
    }
}
