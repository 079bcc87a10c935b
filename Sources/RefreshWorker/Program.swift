import Dispatch
import Glibc

/// The program: parses the command line, reads the configuration, runs the command, exits with its code.
@main
enum Program {
    /// Does the work that does not need a thread, then runs the command.
    ///
    /// It is not an `async` function: the first `await` takes a thread, and would never return if none can be started.
    static func main() {
        ProcessSetup.openStandardDescriptors()
        let invocation: Invocation
        do {
            invocation = try Command.program.parse(try CommandLine.words(), documents: .current)
            if let text = invocation.text {
                Output.standard.write(text)
                exit(ExitCode.success.rawValue)
            }
            if invocation.runsWorker { SignalStream.ignoreHangUps() }
            try ProcessSetup.checkLimits(forDaemon: invocation.runsWorker)
            // Before the first secret is read.
            try ProcessSetup.forbidDumps()
        } catch {
            fail(error)
        }
        Task.detached {
            do {
                exit(try await run(invocation).rawValue)
            } catch {
                fail(error)
            }
        }
        dispatchMain()
    }

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        let inputs = ConfigurationInputs(
            flags: invocation.flags,
            environment: ProcessSetup.environment,
            files: .system
        )
        let configuration = try Configuration(inputs)
        var context = CommandContext(configuration: configuration, inputs: inputs)
        context.printsJSON = invocation.printsJSON
        return try await context.run(invocation)
    }

    private static func fail(_ error: any Error) -> Never {
        let error = CommandError(error)
        for line in DocumentFolder.current.located(error.message).split(separator: "\n") {
            Output.error.line("refresh-worker: \(line)")
        }
        exit(error.exitCode.rawValue)
    }
}
