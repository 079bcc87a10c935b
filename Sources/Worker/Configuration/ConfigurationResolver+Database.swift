import Crypto

extension ConfigurationResolver {
    /// Returns the location of the database; the credential `database-url` precedes the default.
    mutating func database() -> DatabaseLocation {
        let files = files
        let credential = credential("database-url").map { DatabaseLocation.urlFilePrefix + $0 }
        return value(of: .database, insteadOfDefault: credential) { given throws(SettingValue.Refusal) in
            try DatabaseLocation.read(given, files: files)
        }
    }
}

extension DatabaseLocation {
    /// Parses a setting or a flag: a path, an address, or a file that holds an address.
    package static func read(_ given: SettingSources.GivenValue, files: FileReader) throws(SettingValue.Refusal)
        -> DatabaseLocation
    {
        guard given.value.hasPrefix(urlFilePrefix) else {
            let location = try DatabaseLocation(given.value)
            guard !(given.isArgument && location.holdsPassword) else { throw passwordInArgument }
            return location
        }
        return try readAddress(in: String(given.value.dropFirst(urlFilePrefix.count)), files)
    }

    private static let passwordInArgument = SettingValue.Refusal(
        message: """
            holds a password, which every user of the machine can read in the list of processes: leave it out, and put it \
            into a password file (PGPASSFILE), or the whole address into a file of mode 0600 that you name with \
            \(urlFilePrefix)FILE, or into the environment or the configuration file
            """
    )

    private static func readAddress(in path: String, _ files: FileReader) throws(SettingValue.Refusal)
        -> DatabaseLocation
    {
        let content: Secret
        do throws(FileReader.Failure) {
            content = try files.readPrivate(path)
        } catch {
            throw SettingValue.Refusal(message: "\(DisplayedText(path)): \(error.reason)")
        }
        guard let line = content.lines.first?.reveal(), content.lines.count == 1 else {
            throw SettingValue.Refusal(message: "\(DisplayedText(path)) must hold one line, the address of a database")
        }
        do throws(SettingValue.Refusal) {
            try SettingValue.checkText(line)
            let location = try DatabaseLocation(line)
            guard location.file == nil else { throw SettingValue.Refusal(message: "does not begin with postgres://") }
            return location
        } catch {
            throw SettingValue.Refusal(message: "the address in \(DisplayedText(path)) \(error.message)")
        }
    }
}
