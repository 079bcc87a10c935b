import Base

/// The files beside the database that a restore needs.
struct RestoredFiles: Equatable {
    /// Files that hold no secret.
    var open: [String]
    var secret: [String]
    /// Those in the folder of systemd's credentials, which no archive holds.
    var credentials: [String]
}

extension Configuration {
    /// The files beside the database that a restore needs.
    ///
    /// The secret ones open, sign or seal something, as the services file seals what the status page keeps. Credentials
    /// are not archived: systemd makes them from files elsewhere.
    func restoredFiles(credentialsDirectory: String?) -> RestoredFiles {
        let folder = credentialsDirectory.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
        func isCredential(_ file: String) -> Bool {
            guard let folder else { return false }
            return file.hasPrefix(folder)
        }
        let keySets = appKeys.map { location -> String? in if case .file(let path) = location { path } else { nil } }
        let clientID = folder.map { $0 + "client-id" }.flatMap { FileStatus.mayRead($0) ? $0 : nil }
        // This name says that there is no file.
        let settings = configurationFile == "/dev/null" ? nil : configurationFile
        let others = ([settings, caFile, internalCertificateFile] + keySets).compactMap(\.self)
        let opening = [
            keyFile, clientSecretFile, jwtSecretFile, noticeSecretFile, servicesFile, internalKeyFile,
        ].compactMap(\.self)
        // A certificate can be in one file with its key, or a link to that.
        let targets = Set(opening.map(PathResolver.absolute))
        let open = others.filter { !targets.contains(PathResolver.absolute($0)) }
        let secret = opening + others.filter { !open.contains($0) && !opening.contains($0) }
        return RestoredFiles(
            open: open.filter { !isCredential($0) },
            secret: secret.filter { !isCredential($0) },
            credentials: (secret + open + [clientID].compactMap(\.self)).filter(isCredential)
        )
    }

    /// Says which files a worker needs and does not find, a line each.
    func missingFiles(for inputs: ConfigurationInputs) -> [String] {
        let files = restoredFiles(credentialsDirectory: inputs.credentialsDirectory)
        let needed = files.secret + files.open
        let missing = needed.filter { !inputs.files.exists($0) && $0 != serviceKeyRing }
        let user = FileOwner.nameOfCurrentUser
        return missing.map { file in
            let mode = files.secret.contains(file) ? "600" : "644"
            return
                "missing: \(file). From your copy, as root: install -o \(user) -g \(user) -m \(mode) COPY \(file.shellWord)"
        }
    }

    /// Says what someone who reads a copy with these files can do.
    func secrecy(ofCopyWith files: [String], hasSecrets: Bool) -> String {
        if files.contains(keyFile), keyCommand == nil {
            return "It holds keys in plain text, with which every token in it can be used: encrypt it."
        }
        return "Its tokens stay sealed." + (hasSecrets ? " It holds other secrets in plain text: encrypt it." : "")
    }
}
