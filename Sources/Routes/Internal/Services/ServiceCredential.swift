package import Base
package import Crypto

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

    package func writeEntry(to line: inout JSONLine) {
        line.field("name", name)
        line.field("credential_sha256", digest)
        if !isOperator { line.array("scopes") { $0.element("*") } }
        line.array("users") { $0.element("*") }
        if isOperator { line.field("operator", true) }
    }
}
