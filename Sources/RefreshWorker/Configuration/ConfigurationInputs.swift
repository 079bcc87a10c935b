/// Everything that a configuration depends on, so that tests can simulate any machine.
struct ConfigurationInputs: Sendable {
    /// A setting given on the command line.
    struct Flag: Sendable {
        let name: Setting.Name
        let value: String
    }

    var flags: [Flag]
    let environment: [String: String]
    let files: FileReader
    /// The configuration files to look for if none is named, in this order.
    var standardFiles: [String] = []
    /// The file with the address of the service's database, if systemd passes that.
    var serviceDatabase: String?
    /// The key ring that systemd passes to the service, if it does.
    var serviceKeyRing: String?

    /// The user as whom this process of root continues, if it does.
    var continuesAs: String?

    /// The folder of systemd's credentials, unless the variable is empty.
    var credentialsDirectory: String? {
        variable(Setting.credentialsDirectoryName)
    }

    /// The configuration file that a flag or the environment names.
    var namedFile: String? {
        if let flag = flags.last(where: { $0.name == .config }) { return flag.value }
        return variable(Setting.Name.config.environmentName)
    }

    /// Returns the value of a variable, or `nil` if it is empty.
    private func variable(_ name: String) -> String? {
        guard let value = environment[name], !value.isEmpty else { return nil }
        return value
    }
}
