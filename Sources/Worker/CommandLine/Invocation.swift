/// A parsed command line: the command, and the settings that were given with it.
package struct Invocation: Equatable, Sendable {
    package let command: Command
    package let flags: [ConfigurationInputs.Flag]
}
