/// Everything that a configuration depends on, so that tests can simulate any machine.
package struct ConfigurationInputs: Sendable {
    /// A setting given on the command line.
    package struct Flag: Equatable, Sendable {
        let name: Setting.Name
        let value: String
    }

    let flags: [Flag]
    package let environment: [String: String]
    package let files: FileReader

    package init(flags: [Flag], environment: [String: String], files: FileReader) {
        self.flags = flags
        self.environment = environment
        self.files = files
    }
}
