package import Base

/// A key of the ring: 32 random bytes and an id.
///
/// Most keys seal stored tokens. A binding key signs the proofs for the refresh tokens that are bound to it.
package struct RingKey: Sendable {
    package enum Role: Hashable, Sendable {
        /// Opens. It also seals if it is the first active key of the ring that does. For a binding key: signs.
        case active
        /// Opens but does not seal yet, because other workers might not have read it.
        case pending
        /// Opens but never seals again. It stays for a day, because results that it sealed might still wait to be
        /// stored. For a binding key: signs, but no more tokens are bound to it. It stays for good.
        case retired(since: Timestamp)
    }

    private static let salt = Array("refresh-worker sealed 2".utf8)
    /// Another salt, so that a line that has lost its word `binding` is not taken for the same key.
    private static let saltOfBinding = Array("refresh-worker binding 1".utf8)

    package let id: KeyID
    package let role: Role
    /// The key that signs, or `nil` for a key that seals.
    package let binding: BindingKey?

    let material: Secret
    /// Derives the key of each row and column.
    ///
    /// A binding key seals only one value with it: that by which `KeyChecks` recognises the key.
    let derivation: KeyDerivation

    /// Makes a key that seals.
    init(id: KeyID, material: Secret, role: Role) {
        precondition(material.count == CipherContext.keyLength)
        self.id = id
        self.material = material
        self.role = role
        binding = nil
        derivation = KeyDerivation(from: material, salt: Self.salt)
    }

    /// Makes a binding key.
    init(id: KeyID, binding material: Secret, role: Role) throws(CryptoError) {
        binding = try BindingKey(id: id, scalar: material)
        self.id = id
        self.material = material
        self.role = role
        derivation = KeyDerivation(from: material, salt: Self.saltOfBinding)
    }

    private init(_ key: RingKey, role: Role) {
        id = key.id
        material = key.material
        self.role = role
        binding = key.binding
        derivation = key.derivation
    }

    /// Returns the same key in another role.
    func with(role: Role) -> RingKey { RingKey(self, role: role) }

    package var isBinding: Bool { binding != nil }

    /// Generates a key that seals, with a new id.
    static func random(isPending: Bool = false) throws(CryptoError) -> RingKey {
        let material = try Secret.random(byteCount: CipherContext.keyLength)
        return RingKey(id: try .random(), material: material, role: isPending ? .pending : .active)
    }

    /// Generates a binding key with a new id.
    static func randomBinding() throws(CryptoError) -> RingKey {
        try RingKey(id: .random(), binding: P256PrivateKey.randomScalar(), role: .active)
    }
}
