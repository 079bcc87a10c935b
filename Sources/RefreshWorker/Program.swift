private import Glibc

/// The program: understands the command line, reads the configuration, runs the command, ends with its code.
@main
enum Program {
    static func main() async {
        StandardDescriptors.fill()
        do {
            let code = try await run(try ProcessArguments.read())
            exit(code.rawValue)
        } catch let error as UsageError {
            end("\(error)", error.exitCode)
        } catch let error as ConfigurationError {
            end("\(error)", error.exitCode)
        } catch {
            let failure = CommandFailure(error)
            end(failure.message, failure.exitCode)
        }
    }

    private static func run(_ arguments: [String]) async throws -> ExitCode {
        let invocation = try CommandSpecification.program.parse(arguments)
        switch invocation.command {
        case .showHelp(let text):
            Output.standard.write(text)
            return .success
        case .showVersion:
            Output.standard.line("refresh-worker \(Version.current)")
            return .success
        default:
            break
        }
        // Before the first secret is read.
        try ProcessHardening.apply()
        let inputs = ConfigurationInputs(
            flags: invocation.flags,
            environment: ProcessEnvironment.current,
            files: .system
        )
        let configuration = try Configuration.resolve(inputs)
        let workshop = Workshop(configuration: configuration, inputs: inputs)
        return try await workshop.run(invocation.command)
    }

    private static func end(_ message: String, _ code: ExitCode) {
        for line in message.split(separator: "\n") { Output.error.line("refresh-worker: \(line)") }
        exit(code.rawValue)
    }
}
