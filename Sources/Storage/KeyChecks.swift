package import Crypto

/// A known value, sealed with each key that seals stored tokens: a ring that opens all of them is the right one.
package struct KeyChecks: Hashable, Sendable {
    private static let knownValue = Secret("refresh-worker key check")
    private static let context = SealContext(owner: 0 as Int64, column: "key_check")

    private var values: [KeyID: SealedSecret] = [:]
    /// Keys of stored tokens that the ring lacked when this list was made.
    private var unchecked: Set<KeyID> = []

    package init() {}

    package var keyIDs: Set<KeyID> { unchecked.union(values.keys) }

    package mutating func add(_ id: KeyID, of ring: KeyRing) throws(SealError) {
        values[id] = try ring.seal(Self.knownValue, for: Self.context, with: id)
        unchecked.remove(id)
    }

    package mutating func addUnchecked(_ id: KeyID) {
        if values[id] == nil { unchecked.insert(id) }
    }

    package mutating func remove(_ id: KeyID) {
        values[id] = nil
        unchecked.remove(id)
    }

    /// Compares a ring with the list.
    package func fit(of ring: KeyRing) throws(SealError) -> KeyRingFit {
        let ringKeys = Set(ring.keyIDs)
        var opened = unchecked.intersection(ringKeys).count
        var wrong: [KeyID] = []
        for (id, value) in values where ringKeys.contains(id) {
            do {
                _ = try ring.open(value, for: Self.context)
                opened += 1
            } catch {
                guard case .damaged = error else { throw error }
                wrong.append(id)
            }
        }
        let missing = keyIDs.subtracting(ringKeys).sorted()
        if !wrong.isEmpty || (opened == 0 && !missing.isEmpty) { return .foreign((wrong + missing).sorted()) }
        return missing.isEmpty ? .fits : .lacks(missing)
    }
}

/// The fit of a ring and a database.
package enum KeyRingFit: Hashable, Sendable {
    case fits
    /// The ring opens some values; these keys are missing.
    case lacks([KeyID])
    /// The ring opens none, or has different bits under the id of a key that seals stored tokens.
    case foreign([KeyID])

    package var keyIDs: [KeyID] {
        switch self {
        case .fits: []
        case .lacks(let ids), .foreign(let ids): ids
        }
    }
}

/// The list as one line of text: `id=value id=value id`, with the values in hexadecimal digits.
extension KeyChecks {
    package init?(stored: String) {
        for entry in stored.split(separator: " ") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let id = KeyID(String(parts[0])) else { return nil }
            guard parts.count == 2 else {
                unchecked.insert(id)
                continue
            }
            do {
                guard let bytes = Hexadecimal.decode(parts[1]) else { return nil }
                let value = try SealedSecret(bytes: bytes)
                guard value.keyID == id else { return nil }
                values[id] = value
            } catch {
                return nil
            }
        }
    }

    package var stored: String {
        keyIDs.sorted().map { id in values[id].map { "\(id)=\(Hexadecimal.encode($0.bytes))" } ?? "\(id)" }
            .joined(separator: " ")
    }
}
