import Base

/// A setting as `config show` prints it: its value without secrets, and where the value comes from.
struct ShownSetting: Equatable, Sendable {
    /// Where a value comes from, in the order of precedence.
    enum Source: String, CaseIterable, Sendable {
        case flag, environment, file, credential
        case standard = "default"
        case unset
    }

    let name: Setting.Name
    let source: Source
    /// `nil` unless the value is given.
    var origin: SettingOrigin?
    /// The values as they are given: several of a flag that repeats.
    let values: [String]

    /// The value for people, or `nil` if the setting has none.
    ///
    /// An address of a database can hold a password, the address of the backend a key in its query, and the arguments of
    /// a command anything.
    var value: String? {
        guard !values.isEmpty else { return nil }
        return values.map(shown).joined(separator: ",")
    }

    private func shown(_ value: String) -> String {
        if value.holdsCredential { return "(not shown: it looks like a token or a secret)" }
        // The texts below are cut by scalars: Swift joins a sign and an accent after it into one character.
        switch name {
        case .database:
            guard !value.hasPrefix(DatabaseLocation.urlFilePrefix) else { return value.escapingInvisible }
            do {
                return try DatabaseLocation(value).description.escapingInvisible
            } catch {
                // What cannot be read might have its password anywhere.
                return "(not shown)"
            }
        case .noticeURL:
            let address = value.unicodeScalars.prefix { $0 != "?" }
            return String(address).escapingInvisible + (address.count < value.unicodeScalars.count ? "?…" : "")
        case .keyCommand, .keyWrapCommand:
            let program = value.unicodeScalars.prefix { $0 != " " && $0 != "\t" }
            return String(program).escapingInvisible + (program.count < value.unicodeScalars.count ? " …" : "")
        default:
            return value.escapingInvisible
        }
    }

    /// The place of the value within its source: the variable, or the line of the file.
    var place: String? { origin?.variable ?? origin?.fileLine?.description }
}

extension Setting {
    /// The name of the credential of systemd that precedes the default, if there is one.
    var credential: String? {
        switch name {
        case .database: "database-url"
        case .keyFile: "key-ring"
        case .clientID: "client-id"
        case .jwtSecretFile: "jwt-secret"
        case .servicesFile: "services"
        case .noticeSecretFile: "notice-secret"
        default: nil
        }
    }
}
