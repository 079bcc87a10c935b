package import Base
private import Storage

/// The services of a services file.
package struct ServiceList: Hashable, Sendable {
    /// By the SHA-256 of their credentials.
    let services: [[UInt8]: Service]
    private let byName: [String: Service]

    package var count: Int { services.count }

    init(services: [[UInt8]: Service]) {
        self.services = services
        byName = Dictionary(uniqueKeysWithValues: services.values.map { ($0.name, $0) })
    }

    package func service(named name: String) -> Service? { byName[name] }
}

extension ServiceList {
    private static let maximumServices = 1_000
    private static let maximumValues = 10_000
    private static let maximumValueLength = 1024

    /// Parses a services file strictly, so that a spelling mistake never gives a service more access than intended.
    ///
    ///     {"services": [{"name": "mailer", "credential_sha256": "…", "scopes": ["https://…"], "users": ["*"]},
    ///                   {"name": "jane", "credential_sha256": "…", "users": ["*"], "operator": true}]}
    ///
    /// `"connections": ["default"]` limits an entry to these connections of its users.
    ///
    /// Only an operator, who looks up users, or an entry with `"manage": true` may lack `scopes`: it gets no tokens.
    /// Elsewhere a forgotten line must not be a permission. `"users": "present"` is for a service that gets tokens only
    /// with the user's own token.
    package init(parsing text: some Collection<UInt8>) throws(FormatError) {
        let document: JSONValue
        do throws(FormatError) {
            document = try JSONValue.parse(text)
        } catch {
            throw FormatError("not JSON: \(error)")
        }
        let members = try Self.members(of: document, required: ["services"], at: "")
        guard let entries = members["services"]?.array else {
            throw Self.mistake(at: "services", problem: "must be an array of services")
        }
        guard (1...Self.maximumServices).contains(entries.count) else {
            throw Self.mistake(at: "services", problem: "must have 1 to \(Self.maximumServices) services")
        }
        var services: [[UInt8]: Service] = [:]
        var names: [String: Int] = [:]
        for (index, entry) in entries.enumerated() {
            let place = "services[\(index)]"
            let service = try Self.service(entry, at: place)
            if let other = names.updateValue(index, forKey: service.name) {
                throw Self.mistake(at: "\(place).name", problem: "is already the name of services[\(other)]")
            }
            if let other = services.updateValue(service, forKey: service.credentialHash) {
                let problem = "is the credential of services[\(names[other.name] ?? index)] too"
                throw Self.mistake(at: "\(place).credential_sha256", problem: problem)
            }
        }
        self.init(services: services)
    }

    private static func service(_ entry: JSONValue, at place: String) throws(FormatError) -> Service {
        let members = try members(
            of: entry,
            required: ["name", "credential_sha256", "users"],
            optional: ["scopes", "connections", "operator", "manage"],
            at: place
        )
        guard let name = members["name"]?.string, name.isPlainID else {
            throw mistake(at: "\(place).name", problem: ServiceCredential.nameRule)
        }
        let credentialHash = try credentialHash(members, at: place)
        let isOperator = try flag("operator", of: members, at: place)
        let isManager = try flag("manage", of: members, at: place)
        let mayLackTokens = isOperator || isManager
        return Service(
            name: name,
            credentialHash: credentialHash,
            scopes: try scopes(members, mayBeMissing: mayLackTokens, at: place),
            users: try users(members, mayBePresent: !mayLackTokens, at: place),
            connections: try connections(members, at: place),
            isOperator: isOperator,
            isManager: isManager
        )
    }

    private static func credentialHash(
        _ members: [String: JSONValue],
        at place: String
    ) throws(FormatError) -> [UInt8] {
        guard let digits = members["credential_sha256"]?.string, let hash = Hexadecimal.decode(digits),
            hash.count == 32
        else {
            let problem = "must be the SHA-256 of the credential as 64 lower-case hexadecimal digits"
            throw mistake(at: "\(place).credential_sha256", problem: problem)
        }
        return hash
    }

    private static func scopes(
        _ members: [String: JSONValue],
        mayBeMissing: Bool,
        at place: String
    ) throws(FormatError) -> Service.Allowance {
        if let value = members["scopes"] {
            return try allowance(value, at: "\(place).scopes") { ScopeName($0)?.canonical }
        }
        guard mayBeMissing else { throw mistake(at: "\(place).scopes", problem: "is missing") }
        return .nothing
    }

    private static func users(
        _ members: [String: JSONValue],
        mayBePresent: Bool,
        at place: String
    ) throws(FormatError) -> Service.Allowance {
        if mayBePresent, members["users"] == .string("present") { return .present }
        return try allowance(members["users"], orPresent: mayBePresent, at: "\(place).users") {
            $0.isEmpty ? nil : $0
        }
    }

    private static func connections(
        _ members: [String: JSONValue],
        at place: String
    ) throws(FormatError) -> Service.Allowance {
        guard let value = members["connections"] else { return .everything }
        return try allowance(value, at: "\(place).connections") { ConnectionID($0)?.description }
    }

    private static func flag(
        _ name: String,
        of members: [String: JSONValue],
        at place: String
    ) throws(FormatError) -> Bool {
        switch members[name] {
        case nil: return false
        case .bool(let value): return value
        default: throw mistake(at: "\(place).\(name)", problem: "must be true or false")
        }
    }

    /// Returns the members of an object that must have the `required` ones, and no others but the `optional` ones.
    private static func members(
        of value: JSONValue,
        required names: [String],
        optional: [String] = [],
        at place: String
    ) throws(FormatError) -> [String: JSONValue] {
        guard let members = value.object else {
            throw mistake(at: place, problem: "must be an object")
        }
        let prefix = place.isEmpty ? "" : "\(place)."
        let allowed = names + optional
        if let unknown = members.keys.filter({ !allowed.contains($0) }).min() {
            let known = allowed.joined(separator: ", ")
            let shown = unknown.unicodeScalars.contains(where: \.disturbsTerminals) ? "?" : unknown.capped(at: 64)
            throw mistake(at: prefix + shown, problem: "is not known; there are: \(known)")
        }
        for name in names where members[name] == nil {
            throw mistake(at: prefix + name, problem: "is missing")
        }
        return members
    }

    private static func allowance(
        _ value: JSONValue?,
        orPresent: Bool = false,
        at place: String,
        _ read: (String) -> String?
    ) throws(FormatError) -> Service.Allowance {
        guard let values = value?.array, (1...maximumValues).contains(values.count) else {
            let texts = "an array of 1 to \(maximumValues) texts"
            let forms = orPresent ? "\(texts), or \"present\"" : "or \(texts)"
            throw mistake(at: place, problem: "must be [\"*\"] for all, \(forms)")
        }
        if values == [.string("*")] { return .everything }
        var names: Set<String> = []
        for (index, value) in values.enumerated() {
            let place = "\(place)[\(index)]"
            if value == .string("*") { throw mistake(at: place, problem: "must be the only entry to mean all") }
            guard let text = value.string, text.utf8.count <= maximumValueLength, let name = read(text) else {
                throw mistake(at: place, problem: "is not a name")
            }
            names.insert(name)
        }
        return .only(names)
    }

    /// `place` is the place in the file, such as `services[2].scopes`.
    private static func mistake(at place: String, problem: String) -> FormatError {
        FormatError(place.isEmpty ? problem : "\(place): \(problem)")
    }
}
