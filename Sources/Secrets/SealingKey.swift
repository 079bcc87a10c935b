/// A key of the ring: 256 random bits and their name.
package struct SealingKey: Sendable {
    package let id: KeyID
    /// A pending key opens but does not seal yet: other workers may not have read it.
    package let isPending: Bool

    let material: Secret
    /// Derives the key of each place that a value is sealed for.
    let derivation: KeyDerivation

    private static let salt = Array("refresh-worker sealed 2".utf8)

    init(id: KeyID, material: Secret, isPending: Bool) {
        precondition(material.count == CipherContext.keyLength)
        self.id = id
        self.material = material
        derivation = KeyDerivation(from: material, salt: Self.salt)
        self.isPending = isPending
    }

    /// A new key under a new name.
    package static func random(isPending: Bool = false) throws(SealError) -> SealingKey {
        let material = try Secret(capacity: CipherContext.keyLength) { (room) throws(SealError) in
            try LibCrypto.fillRandomly(&room, in: 0..<room.byteCount)
            return room.byteCount
        }
        return SealingKey(id: try .random(), material: material, isPending: isPending)
    }
}
