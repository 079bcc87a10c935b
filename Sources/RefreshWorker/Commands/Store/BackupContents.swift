import Base

extension Configuration {
    /// The files beside the database that a restore needs.
    ///
    /// The secret ones open, sign or seal something, as the services file seals what the status page keeps. Credentials
    /// are not archived: systemd makes them from files elsewhere.
    func restoredFiles(
        credentialsDirectory: String?
    ) -> (open: [String], secret: [String], credentials: [String]) {
        let folder = credentialsDirectory.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
        func isCredential(_ file: String) -> Bool { folder.map { file.hasPrefix($0) } ?? false }
        let keySets = appKeys.map { location -> String? in if case .file(let path) = location { path } else { nil } }
        let clientID = folder.map { $0 + "client-id" }.flatMap { FileStatus.mayRead($0) ? $0 : nil }
        // This name says that there is no file.
        let settings = configurationFile == "/dev/null" ? nil : configurationFile
        let others = ([settings, caFile, internalCertificateFile] + keySets).compactMap(\.self)
        let opening = [
            keyFile, clientSecretFile, jwtSecretFile, noticeSecretFile, servicesFile, internalKeyFile,
        ].compactMap(\.self)
        // A certificate can be in one file with its key, or a link to that.
        let targets = Set(opening.map(FileStatus.absolute))
        let open = others.filter { !targets.contains(FileStatus.absolute($0)) }
        let secret = opening + others.filter { !open.contains($0) && !opening.contains($0) }
        return (
            open.filter { !isCredential($0) }, secret.filter { !isCredential($0) },
            (secret + open + [clientID].compactMap(\.self)).filter(isCredential)
        )
    }

    /// Says what someone who reads a copy with these files can do.
    func secrecy(ofCopyWith files: [String], hasSecrets: Bool) -> String {
        if files.contains(keyFile) {
            return "It holds keys in plain text, with which every token in it can be used: encrypt it."
        }
        return "Its tokens stay sealed." + (hasSecrets ? " It holds other secrets in plain text: encrypt it." : "")
    }
}

/// The copies that a nightly backup leaves in its folder.
enum BackupSeries {
    private static let prefix = "refresh-worker-"
    /// A time in a name: each zero stands for a digit.
    private static let form = "00000000T000000Z"

    /// The name of a copy that was begun at an instant.
    ///
    /// Names sort by time.
    static func name(at now: Timestamp, ending: String) -> String { prefix + stamp(now) + ending }

    /// Returns the names to remove: complete copies beyond the latest ones, and what a killed backup has left, once it is
    /// a day old.
    ///
    /// The copy of `now` stays. Those of a later time are from a clock that was ahead, so they count as the oldest.
    static func superfluous(among names: [String], keeping count: Int, ending: String, at now: Timestamp) -> [String] {
        let own = names.sorted().compactMap { name in parts(of: name, ending: ending).map { (name: name, parts: $0) } }
        let copies = own.filter { $0.parts.rest.isEmpty }
        let older = copies.filter { $0.parts.stamp > stamp(now) } + copies.filter { $0.parts.stamp < stamp(now) }
        let former = stamp(now - .seconds(86_400))
        let leftovers = own.filter { $0.parts.stamp < former && $0.parts.rest.hasPrefix(".partial-") }
        return (older.dropLast(count - 1) + leftovers).map { $0.name }
    }

    /// Returns the time in a copy's name and what follows its ending, or `nil` if the name is of another file.
    private static func parts(of name: String, ending: String) -> (stamp: Substring, rest: Substring)? {
        let stamp = name.dropFirst(prefix.count).prefix(form.count)
        let beginning = "\(prefix)\(stamp)\(ending)"
        let isTime = zip(stamp, form).allSatisfy { $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1 }
        guard name.hasPrefix(beginning), stamp.count == form.count, isTime else { return nil }
        return (stamp, name.dropFirst(beginning.count))
    }

    private static func stamp(_ time: Timestamp) -> Substring {
        Substring(time.iso8601Seconds.filter { $0 != "-" && $0 != ":" })
    }
}
