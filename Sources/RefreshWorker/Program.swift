import Base
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
        let arguments: CommandArguments
        let inputs: ConfigurationInputs
        let hasSwitched: Bool
        do {
            arguments = try Command.program.parse(try CommandLine.words(), documents: .current)
            if let text = arguments.text {
                Output.standard.write(text)
                exit(ExitCode.success.rawValue)
            }
            if arguments.runsWorker { SignalStream.ignoreHangUps() }
            inputs = gather(for: arguments)
            hasSwitched = try becomeServiceUser(for: arguments, inputs)
            try ProcessSetup.checkLimits(forDaemon: arguments.runsWorker)
            // Before the first secret is read.
            try ProcessSetup.forbidDumps()
        } catch {
            fail(error)
        }
        Task.detached {
            do {
                exit(try await run(arguments, inputs, namesFile: !hasSwitched).rawValue)
            } catch {
                fail(error)
            }
        }
        dispatchMain()
    }

    private static func gather(for arguments: CommandArguments) -> ConfigurationInputs {
        let environment = ProcessSetup.environment
        var inputs = ConfigurationInputs(flags: arguments.flags, environment: environment, files: .system)
        if arguments.readsConfiguration {
            inputs.standardFiles = Installation.files(isRoot: ServiceUser.isRoot, environment: environment)
            inputs.serviceKeyRing = Installation.keyRing(exists: inputs.files.exists)
            inputs.serviceDatabase = Installation.database(
                for: arguments.command,
                exists: inputs.files.exists
            )
        }
        return inputs
    }

    /// Continues as the service's user if root should not go on, and returns `true` if so.
    private static func becomeServiceUser(
        for arguments: CommandArguments,
        _ inputs: ConfigurationInputs
    ) throws -> Bool {
        guard ServiceUser.isRoot, Installation.needsUser(for: arguments, with: inputs),
            let user = try ServiceUser(name: Installation.user)
        else { return false }
        do throws(SystemCallError) {
            try user.become()
        } catch {
            throw CommandError(
                .configuration,
                "root cannot continue as \(user.name) (\(error)): run this as that user, or stay root with --no-switch"
            )
        }
        Output.error.line(
            "refresh-worker: runs as user \(user.name) with the settings of \(Installation.file) (--no-switch: as root)"
        )
        return true
    }

    private static func run(
        _ arguments: CommandArguments,
        _ inputs: ConfigurationInputs,
        namesFile: Bool
    ) async throws -> ExitCode {
        let configuration = try Configuration(inputs)
        if namesFile, inputs.namedFile == nil, let file = configuration.configurationFile {
            Output.error.line("refresh-worker: the settings are those of \(file)")
        }
        var reloaded = inputs
        // A reload reads the same file, and is refused without it.
        if let file = configuration.configurationFile { reloaded.flags.append((.config, file)) }
        var context = CommandContext(configuration: configuration, inputs: reloaded)
        context.printsJSON = arguments.printsJSON
        return try await context.run(arguments)
    }

    private static func fail(_ error: any Error) -> Never {
        let error = CommandError(error)
        for line in DocumentFolder.current.located(error.message).split(separator: "\n") {
            Output.error.line("refresh-worker: \(line)")
        }
        exit(error.exitCode.rawValue)
    }
}
