import Base
import Crypto
import Glibc

@testable import RefreshWorker

/// A machine with the flags, variables and files of one test.
struct TestMachine {
    var flags: [(Setting.Name, String)] = []
    var environment: [String: String] = [:]
    var files: [String: String] = [:]
    /// The files that exist but that this user cannot read.
    var unreadableFiles: Set<String> = []
    var isRoot = false
    var continuesAs: String?
    var command = Command.program

    static let configurationFile = "/etc/worker.conf"

    /// A machine whose only configuration is a file.
    init(
        flags: [(Setting.Name, String)] = [],
        environment: [String: String] = [:],
        file: String? = nil,
        files: [String: String] = [:]
    ) {
        self.flags = flags
        self.environment = environment
        self.files = files
        if let file {
            self.flags.append((.config, Self.configurationFile))
            self.files[Self.configurationFile] = file
        }
    }

    func resolve() throws(CommandError) -> Configuration {
        try Configuration(inputs)
    }

    /// The lines of the error; empty if the configuration is valid.
    var complaints: [String] {
        do throws(CommandError) {
            _ = try resolve()
            return []
        } catch {
            return error.message.split(separator: "\n").map(String.init)
        }
    }

    var inputs: ConfigurationInputs {
        let files = files
        let unreadableFiles = unreadableFiles
        return ConfigurationInputs(
            flags: flags.map { ConfigurationInputs.Flag(name: $0.0, value: $0.1) },
            environment: environment,
            files: FileReader(
                read: { path throws(InputError) in
                    if unreadableFiles.contains(path) { throw InputError(code: EACCES) }
                    guard let text = files[path] else {
                        throw InputError("cannot be read: No such file or directory", isMissing: true)
                    }
                    return Array(text.utf8)
                },
                readPrivate: { path throws(InputError) in
                    guard let text = files[path] else {
                        throw InputError("cannot be read: No such file or directory", isMissing: true)
                    }
                    return Secret(text)
                },
                exists: { files[$0] != nil }
            ),
            standardFiles: Installation.files(isRoot: isRoot, environment: environment),
            serviceDatabase: Installation.database(for: command) { files[$0] != nil },
            serviceKeyRing: Installation.keyRing { files[$0] != nil },
            continuesAs: continuesAs
        )
    }
}
