internal import Base

/// The keys that seal stored tokens, and those that refresh tokens are bound to.
///
/// Of the active keys, the first binding key that every worker holds is the one that new refresh tokens are bound to,
/// and the first other key seals. Every key can open what it sealed.
///
/// Sealing is AES-256-GCM with a random nonce of 96 bits, which allows 2³² seals under one key (NIST SP 800-38D,
/// section 8.3). Each row and column has its own derived key, so a grant that is sealed 29 times a day takes
/// 400,000 years to reach that number, regardless of the number of grants (docs/operate.md#keys). One key for all of
/// ten million grants would reach it in 15 days. No additional data is authenticated, because the place is part of the
/// key.
///
/// The derived key makes sealing 1.06 and opening 1.14 times as expensive. OpenSSL has AES-GCM-SIV, which tolerates
/// repeated nonces, only since 3.2, and has no XChaCha20. A counter as the nonce would have to be durable for every
/// worker, and a restored backup would repeat it.
package struct KeyRing: Sendable {
    /// The keys in the order of the ring's file, including pending ones.
    package let keys: [RingKey]

    private static let maximumAttempts = 3

    private let sealingKey: RingKey

    /// Takes the keys of a ring.
    ///
    /// Errors name the path of its file.
    init(keys: [RingKey], path: String = "") throws(FileError) {
        var seen: Set<KeyID> = []
        for key in keys where !seen.insert(key.id).inserted {
            throw FileError(keyFile: path, duplicate: key.id)
        }
        guard let sealingKey = keys.first(where: { $0.role == .active && !$0.isBinding }) else {
            throw FileError(
                keyFile: path,
                "has no key that seals: restore it from a backup, or remove the word \"pending\" from a key's line"
            )
        }
        self.keys = keys
        self.sealingKey = sealingKey
    }

    package var sealingKeyID: KeyID { sealingKey.id }

    /// The ids of all keys of this ring, including pending ones.
    package var keyIDs: [KeyID] { keys.map(\.id) }

    /// The keys that refresh tokens can be bound to from now on, the one that was added last first.
    package var bindingKeys: [BindingKey] { keys.filter { $0.role == .active }.compactMap(\.binding) }

    /// The key that refresh tokens are bound to once every worker holds it, or `nil` if the ring has none.
    package var bindingKey: BindingKey? { bindingKeys.first }

    /// Returns the binding key of this id, whatever its role.
    package func bindingKey(_ id: KeyID) throws(CryptoError) -> BindingKey {
        guard let key = keys.first(where: { $0.id == id })?.binding else { throw .unknownKey(id) }
        return key
    }

    /// Returns the keys of another ring that this one lacks, or has with different bits under the same id.
    func missingKeys(of other: KeyRing) -> [KeyID] {
        let missing = other.keys.filter { key in
            !keys.contains { $0.id == key.id && $0.isBinding == key.isBinding && $0.material == key.material }
        }
        return missing.map(\.id)
    }

    /// `true` if the other ring has the same keys in the same order and roles.
    package func isSame(as other: KeyRing) -> Bool {
        keyIDs == other.keyIDs && keys.map(\.role) == other.keys.map(\.role) && missingKeys(of: other).isEmpty
    }

    package func seal(_ secret: Secret, for context: SealContext) throws(CryptoError) -> SealedSecret {
        try seal(secret, for: context, with: sealingKey)
    }

    /// Seals with the given key of the ring, whatever its role.
    package func seal(_ secret: Secret, for context: SealContext, with id: KeyID) throws(CryptoError) -> SealedSecret {
        guard let key = keys.first(where: { $0.id == id }) else { throw .unknownKey(id) }
        return try seal(secret, for: context, with: key)
    }

    private func seal(
        _ secret: Secret,
        for context: SealContext,
        with key: RingKey
    ) throws(CryptoError) -> SealedSecret {
        let length = SealedSecret.minimumByteCount + secret.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        bytes.append(SealedSecret.version)
        bytes.append(UInt8(KeyID.length))
        key.id.appendDigits(to: &bytes)
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: length - start))
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        try CipherContext.writeNonce(into: &buffer, at: start)
        // The tag covers only the secret: the derived key depends on the row, the column and the id of the ring's key.
        try key.derivation.withKey(for: context.derivationPurpose) { (key) throws(CryptoError) in
            try secret.withBytes { (message) throws(CryptoError) in
                try CipherContext.seal(message, key: key, into: &buffer, at: start)
            }
        }
        return SealedSecret(bytes: bytes, sealedBy: key.id)
    }

    /// Opens a sealed value.
    ///
    /// A failure of the library, such as refused memory, says nothing about the value. It is tried again at once, and
    /// ends the process if it lasts, as a refused allocation of Swift does.
    package func open(_ sealed: SealedSecret, for context: SealContext) throws(CryptoError) -> Secret {
        var attempts = 0
        while true {
            do throws(CryptoError) {
                return try openOnce(sealed, for: context)
            } catch {
                guard case .libraryFailure = error else { throw error }
                attempts += 1
                if attempts == Self.maximumAttempts { OpenSSL.endProcess("a token cannot be decrypted: \(error)") }
            }
        }
    }

    private func openOnce(_ sealed: SealedSecret, for context: SealContext) throws(CryptoError) -> Secret {
        guard let key = keys.first(where: { $0.id == sealed.keyID }) else { throw .unknownKey(sealed.keyID) }
        let length = sealed.bytes.count - SealedSecret.minimumByteCount
        return try Secret(capacity: length) { (buffer) throws(CryptoError) in
            let message = unsafe sealed.bytes.span.bytes.extracting(SealedSecret.headerLength...)
            let isIntact = try key.derivation.withKey(for: context.derivationPurpose) { (key) throws(CryptoError) in
                try CipherContext.open(message, key: key, into: &buffer)
            }
            guard isIntact else { throw .damaged(sealed.keyID) }
            return buffer.byteCount
        }
    }
}
