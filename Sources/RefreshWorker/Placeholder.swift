private import Glibc

/// Stands in for the program until its commands are there: it understands the command line and the configuration.
@main
enum Placeholder {
    static func main() async {
        do {
            let invocation = try CommandSpecification.program.parse(Array(CommandLine.arguments.dropFirst()))
            if case .showHelp(let text) = invocation.command {
                print(text, terminator: "")
                return
            }
            let inputs = ConfigurationInputs(
                flags: invocation.flags,
                environment: ProcessEnvironment.current,
                files: .system
            )
            print("refresh-worker \(Version.current)", invocation.command, try Configuration.resolve(inputs))
        } catch let error as UsageError {
            fail("\(error)", error.exitCode)
        } catch let error as ConfigurationError {
            fail("\(error)", error.exitCode)
        } catch {
            fail("\(error)", .internalFailure)
        }
    }

    private static func fail(_ message: String, _ code: ExitCode) {
        let line = Array("\(message)\n".utf8)
        _ = unsafe write(STDERR_FILENO, line, line.count)
        exit(code.rawValue)
    }
}
