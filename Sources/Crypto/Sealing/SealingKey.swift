package import Base

/// A key of the ring: 256 random bits and an id.
package struct SealingKey: Sendable {
    package enum Role: Hashable, Sendable {
        /// Opens. It also seals if it is the first active key of the ring.
        case active
        /// Opens but does not seal yet, because other workers might not have read it.
        case pending
        /// Opens but never seals again. It stays because results that it sealed might still wait to be stored.
        case retired(since: Timestamp)
    }

    private static let salt = Array("refresh-worker sealed 2".utf8)

    package let id: KeyID
    package let role: Role

    let material: Secret
    /// Derives the key of each row and column.
    let derivation: KeyDerivation

    init(id: KeyID, material: Secret, role: Role) {
        precondition(material.count == CipherContext.keyLength)
        self.id = id
        self.material = material
        self.role = role
        derivation = KeyDerivation(from: material, salt: Self.salt)
    }

    /// Generates a key with a new id.
    static func random(isPending: Bool = false) throws(CryptoError) -> SealingKey {
        let material = try Secret.random(byteCount: CipherContext.keyLength)
        return SealingKey(id: try .random(), material: material, role: isPending ? .pending : .active)
    }
}
