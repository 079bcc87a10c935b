package import Base
package import Crypto
import HTTPServer
import Storage
private import Synchronization

/// An entry of the services file: a service that gets tokens or manages grants, or an operator who looks up users.
package struct Service: Hashable, Sendable {
    /// The users or the scopes that a service may have.
    enum Allowance: Hashable, Sendable {
        case everything
        case only(Set<String>)
        /// The users whose own token the service presents, and nobody by name.
        case present

        static let nothing = Allowance.only([])

        /// Compares bytes, as the store does: Swift treats two encodings of an accented letter as one text, but they
        /// name two users.
        func covers(_ name: String) -> Bool {
            switch self {
            case .everything: true
            case .present: false
            case .only(let names): names.firstIndex(of: name).map { names[$0].utf8.elementsEqual(name.utf8) } ?? false
            }
        }
    }

    let name: String
    /// The SHA-256 of the service's credential.
    let credentialHash: [UInt8]
    let scopes: Allowance
    /// The users whose tokens it may have, whose grants it may manage, and whom an operator may look up.
    let users: Allowance
    /// `true` if it may look up users on the status page.
    var isOperator = false
    /// `true` if it may use the routes of ``AdministrationHandler``.
    var isManager = false
}

extension Service {
    package func mayHaveTokens(ofUser userID: String) -> Bool { scopes != .nothing && users.covers(userID) }

    /// Returns the reason why the service may not have a token of a user for some scopes, or `nil` if it may.
    ///
    /// Google's tokens carry all granted scopes and cannot be narrowed. So a limit on scopes applies to the scopes that
    /// a service requests. The service must request some, so that the audit shows the purpose of the token.
    ///
    /// The user is present if the request has the user's own token.
    func refusal(forUser userID: String, isPresent: Bool = false, scopes requested: [ScopeName]) -> APIError? {
        guard scopes != .nothing else { return .forbiddenTokens }
        guard isPresent && users == .present || users.covers(userID) else {
            return users == .present ? .absentUser : .forbiddenUser
        }
        guard scopes != .everything else { return nil }
        guard !requested.isEmpty else { return .unnamedScopes }
        return requested.allSatisfy { scopes.covers($0.canonical) } ? nil : .forbiddenScopes
    }
}

/// A new credential for a service or an operator, and its entry for the services file.
package struct ServiceCredential: Sendable {
    /// The prefix that identifies such a credential in a search for leaked secrets.
    private static let prefix = "rwc_"

    package static let nameRule = "must be 1 to 64 letters, digits, dots, dashes or underscores"

    /// The secret that the service presents, which is printed once and not stored.
    package let secret: Secret
    /// The entry for the services file, which allows a service all tokens, and an operator all users, until it is
    /// edited.
    package var entry: String {
        var line = JSONLine()
        writeEntry(to: &line)
        return line.text
    }

    private let name: String
    private let digest: String
    /// `true` for a person who looks up users on the status page and gets no tokens.
    private let isOperator: Bool

    /// Makes 256 random bits, or returns `nil` for a name that is invalid in a services file.
    package init?(forService name: String, isOperator: Bool = false) throws(CryptoError) {
        guard name.isPlainID else { return nil }
        self.isOperator = isOperator
        secret = try .randomText(prefix: Self.prefix, byteCount: 32)
        self.name = name
        digest = Hexadecimal.encode(Digest.sha256(Array(secret.reveal().utf8)))
    }

    /// Adds the fields of ``entry`` to an object.
    package func writeEntry(to line: inout JSONLine) {
        line.field("name", name)
        line.field("credential_sha256", digest)
        if !isOperator { line.array("scopes") { $0.element("*") } }
        line.array("users") { $0.element("*") }
        if isOperator { line.field("operator", true) }
    }
}

/// The current services by credential.
///
/// Credentials are long and random, so a plain hash protects them against guessing. They are found by that hash, which
/// a caller cannot choose, so the time of a look-up does not reveal existing ones. With HTTP Basic a service is found
/// by its name, which is not secret.
package final class ServiceDirectory: Sendable {
    private let list: Mutex<ServiceList>

    package init(_ services: ServiceList) {
        list = Mutex(services)
    }

    /// Replaces the services, for example after a reload.
    package func replace(_ services: ServiceList) {
        list.withLock { $0 = services }
    }

    /// Returns the service of a credential.
    func service(presenting credential: some StringProtocol) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        return list.withLock { $0.services[hash] }
    }

    /// Returns the user of a handle of any service.
    func user(ofHandle handle: String) throws(CryptoError) -> String? {
        for service in list.withLock({ $0.services }).values {
            if let user = try service.userID(ofHandle: handle) { return user }
        }
        return nil
    }

    /// Returns the service with this name if the credential is its own.
    func service(named name: String, presenting credential: String) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        guard let service = list.withLock({ $0.service(named: name) }) else { return nil }
        return ConstantTime.areEqual(service.credentialHash, hash) ? service : nil
    }

    /// Returns the service that a request authenticates: by its credential alone, or with its name by HTTP Basic, as a
    /// browser does.
    func service(authenticating request: ServerRequest) -> Service? {
        guard let credential = request.serviceCredential?.reveal() else { return nil }
        guard case .present(let name, _) = BasicCredentials(of: request) else {
            return service(presenting: credential)
        }
        return service(named: name, presenting: credential)
    }
}

extension ServerRequest {
    /// The credential that a request presents: a bearer token, or the password of HTTP Basic.
    var serviceCredential: Secret? {
        if let token = BearerToken(of: self).text { return Secret(token) }
        guard case .present(_, let password) = BasicCredentials(of: self) else { return nil }
        return Secret(password)
    }
}

/// Handles: opaque texts that name a user to one service, where plain user ids are not wanted.
///
/// The worker stores no handles: a handle is the user's id, sealed with a key that is derived from the service's name
/// and the hash of its credential. So a handle ends with the credential, and is useless to any other service.
extension Service {
    /// The prefix that distinguishes handles from user ids.
    static let handlePrefix = "rwh_"

    package func handle(of userID: String) throws -> String {
        Self.handlePrefix + Base64URL.encode(try handleKey.seal(userID))
    }

    /// Returns the user of a handle, or `nil` if it is not a handle of this service.
    func userID(ofHandle handle: String) throws(CryptoError) -> String? {
        let digits = handle.dropFirst(Self.handlePrefix.count)
        guard handle.hasPrefix(Self.handlePrefix), let sealed = Base64URL.decode(digits) else { return nil }
        return try handleKey.open(sealed)
    }

    private var handleKey: TextSealingKey { TextSealingKey(from: Secret(utf8: credentialHash), owner: name) }
}
