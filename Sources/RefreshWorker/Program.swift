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
        var inputs: ConfigurationInputs
        let user: ServiceUser?
        do {
            arguments = try Command.program.parse(
                try CommandLine.words(),
                documents: .current,
                width: TextForm(terminalWidth: Output.standard.width).width ?? HelpPage.usualWidth
            )
            if let text = arguments.text {
                Output.standard.write(text)
                exit(ExitCode.success.rawValue)
            }
            if arguments.runsWorker { SignalStream.ignoreHangUps() }
            inputs = gather(for: arguments)
            user = try becomeServiceUser(for: arguments, inputs: &inputs)
            try ProcessSetup.checkLimits(forDaemon: arguments.runsWorker)
            // Before the first secret is read.
            try ProcessSetup.forbidDumps()
        } catch {
            fail(error)
        }
        Task.detached { [inputs] in
            do {
                exit(try await run(arguments, inputs: inputs, as: user).rawValue)
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

    /// Continues as the service's user if root should not go on, and returns that user.
    private static func becomeServiceUser(
        for arguments: CommandArguments,
        inputs: inout ConfigurationInputs
    ) throws -> ServiceUser? {
        guard ServiceUser.isRoot else { return nil }
        let foreign = Installation.foreignFile(
            for: arguments,
            with: inputs,
            onlyRootCanChange: PathResolver.onlyRootCanChange
        )
        guard let foreign else { return nil }
        guard let user = try ServiceUser(name: Installation.user) else {
            throw CommandError(
                .configuration,
                """
                another user than root can change \(foreign): run this as that user (runuser -u \(owner(of: foreign)) -- \
                refresh-worker …), or stay root with --no-switch
                """
            )
        }
        do throws(SystemCallError) {
            try user.become()
        } catch {
            throw CommandError(
                .configuration,
                "root cannot continue as \(user.name) (\(error)): run this as that user, or stay root with --no-switch"
            )
        }
        inputs.continuesAs = user.name
        return user
    }

    /// The user to name in an advice: the owner of a file that another user than root can change.
    private static func owner(of file: String) -> String {
        let names = [file, file.parentFolder].compactMap { FileOwner($0)?.name }
        return names.first { $0 != "root" } ?? "USER"
    }

    private static func run(
        _ arguments: CommandArguments,
        inputs: ConfigurationInputs,
        as user: ServiceUser?
    ) async throws -> ExitCode {
        let configuration: Configuration
        do throws(CommandError) {
            configuration = try Configuration(inputs)
        } catch {
            if let user { Output.error.line(announcement(of: user, file: nil)) }
            throw error
        }
        let announcement = announcement(of: user, with: configuration, foundIn: inputs)
        let isSaidFirst = arguments.needsAnnouncement(onTerminal: Output.error.isTerminal)
        if isSaidFirst, let announcement { Output.error.line(announcement) }
        var reloaded = inputs
        // A reload reads the same file, and is refused without it.
        if let file = configuration.configurationFile {
            reloaded.flags.append(ConfigurationInputs.Flag(name: .config, value: file))
        }
        do {
            return try await arguments.run(in: CommandContext(configuration: configuration, inputs: reloaded))
        } catch {
            // Whoever looks for the reason must know as whom the command ran, and with which settings.
            if !isSaidFirst, let announcement { Output.error.line(announcement) }
            throw error
        }
    }

    /// Returns the line about what was chosen for a command: its user, or the configuration file that was found.
    private static func announcement(
        of user: ServiceUser?,
        with configuration: Configuration,
        foundIn inputs: ConfigurationInputs
    ) -> String? {
        if let user { return announcement(of: user, file: configuration.configurationFile) }
        guard inputs.namedFile == nil, let file = configuration.configurationFile else { return nil }
        return "refresh-worker: the settings are those of \(file)"
    }

    private static func announcement(of user: ServiceUser, file: String?) -> String {
        var line = "refresh-worker: runs as user \(user.name)"
        if let file { line += " with the settings of \(file)" }
        return line + " (--no-switch: as root)"
    }

    private static func fail(_ error: any Error) -> Never {
        let error = CommandError(error)
        for line in DocumentFolder.current.located(error.message).split(separator: "\n") {
            Output.error.line("refresh-worker: \(line)")
        }
        exit(error.exitCode.rawValue)
    }
}
