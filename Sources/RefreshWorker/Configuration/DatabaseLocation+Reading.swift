import Base
import Crypto

extension DatabaseLocation {
    /// Parses a setting or a flag: a path, an address, or a file that holds an address.
    ///
    /// Every user of the machine can read an argument, so it must not hold a password.
    static func read(_ text: String, isArgument: Bool, files: FileReader) throws(InputError)
        -> DatabaseLocation
    {
        guard text.hasPrefix(urlFilePrefix) else {
            let location = try DatabaseLocation(text)
            guard !(isArgument && location.holdsPassword) else { throw passwordInArgument }
            return location
        }
        return try readAddress(in: String(text.dropFirst(urlFilePrefix.count)), from: files)
    }

    private static let passwordInArgument = InputError(
        """
        holds a password, which every user of the machine can read in the list of processes: leave it out, and put it \
        into a password file (PGPASSFILE), or the whole address into a file of mode 0600 that you name with \
        \(urlFilePrefix)FILE, or into the environment or the configuration file
        """
    )

    private static func readAddress(in path: String, from files: FileReader) throws(InputError)
        -> DatabaseLocation
    {
        let content: Secret
        do throws(InputError) {
            content = try files.readPrivate(path)
        } catch {
            throw InputError("\(DisplayedText(path)): \(error.message)")
        }
        guard let line = content.lines.first?.reveal(), content.lines.count == 1 else {
            throw InputError("\(DisplayedText(path)) must hold one line, the address of a database")
        }
        do throws(InputError) {
            try InputText.checkText(line)
            let location = try DatabaseLocation(line)
            guard location.file == nil else { throw InputError("does not begin with postgres://") }
            return location
        } catch {
            throw InputError("the address in \(DisplayedText(path)) \(error.message)")
        }
    }
}
