import Base

/// The form of a family's earlier tokens and instants in one column; the current hash has its own column.
///
/// Numbers are big-endian. A format byte, the epoch, the state of the current token, then the earlier tokens.
extension TokenFamily {
    private static let format: UInt8 = 1
    /// Far more milliseconds than any boot clock or server clock shows, and few enough that differences do not
    /// overflow.
    fileprivate static let possibleInstants: ClosedRange<Int64> = -1 << 53...1 << 53

    package var historyBytes: [UInt8] {
        var writer = Writer()
        writer.add(byte: Self.format)
        writer.add(short: Array(epoch.utf8.prefix(255)))
        writer.add(issuedAt)
        writer.add(sentAt)
        writer.add(byte: wasRepeated ? 1 : 0)
        writer.add(byte: UInt8(earlier.count.clamped(to: 0...255)))
        for member in earlier.suffix(255) {
            writer.add(byte: member.state.rawValue | (member.wasRepeated ? 0x80 : 0))
            writer.add(short: member.hash)
            writer.add(member.sentAt)
            writer.add(member.replacedAt)
        }
        return writer.bytes
    }

    /// Parses a stored family; `nil` if the bytes are damaged.
    ///
    /// A family without history has only its current token.
    package init?(currentHash: [UInt8], historyBytes: [UInt8]?) {
        guard let historyBytes else {
            self.init(currentHash: currentHash, epoch: "", issuedAt: nil, sentAt: nil, wasRepeated: false, earlier: [])
            return
        }
        var reader = Reader(rest: historyBytes[...])
        guard reader.byte() == Self.format, let epochBytes = reader.short(),
            let epoch = String(validating: epochBytes, as: UTF8.self), let issuedAt = reader.instant(),
            let sentAt = reader.instant(), let repeated = reader.byte(), let count = reader.byte()
        else { return nil }
        var earlier: [Member] = []
        for _ in 0..<count {
            guard let flags = reader.byte(), let state = MemberState(rawValue: flags & 0x7f), let hash = reader.short(),
                let sentAt = reader.instant(), let replacedAt = reader.instant()
            else { return nil }
            earlier.append(
                Member(
                    hash: hash,
                    state: state,
                    sentAt: sentAt,
                    wasRepeated: flags & 0x80 != 0,
                    replacedAt: replacedAt
                )
            )
        }
        guard reader.rest.isEmpty else { return nil }
        self.init(
            currentHash: currentHash,
            epoch: epoch,
            issuedAt: issuedAt,
            sentAt: sentAt,
            wasRepeated: repeated != 0,
            earlier: earlier
        )
    }
}

private struct Writer {
    var bytes: [UInt8] = []

    mutating func add(byte: UInt8) { bytes.append(byte) }

    mutating func add(short text: [UInt8]) {
        bytes.append(UInt8(text.count.clamped(to: 0...255)))
        bytes.append(contentsOf: text.prefix(255))
    }

    mutating func add(_ instant: BootInstant?) {
        let bits = UInt64(bitPattern: instant?.milliseconds ?? .min)
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
    }
}

private struct Reader {
    var rest: ArraySlice<UInt8>

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func short() -> [UInt8]? {
        guard let count = byte(), rest.count >= Int(count) else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return Array(rest.prefix(Int(count)))
    }

    /// Reads an instant, which may be unknown; `nil` if the bytes end before it, or hold an instant that no clock
    /// shows.
    mutating func instant() -> BootInstant?? {
        guard rest.count >= 8 else { return nil }
        let bits = rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(8)
        let milliseconds = Int64(bitPattern: bits)
        if milliseconds == .min { return .some(nil) }
        guard TokenFamily.possibleInstants.contains(milliseconds) else { return nil }
        return BootInstant(milliseconds: milliseconds)
    }
}
