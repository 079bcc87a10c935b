import Base

/// The text of a key ring's file: comments and keys, one per line, in order.
struct KeyRingDocument {
    enum Line {
        /// A comment or an empty line, kept as it is. It is a secret because it may be a key that was commented out.
        case comment(Secret)
        case key(SealingKey)
    }

    /// The error in a text, with its line, counted from 1.
    struct Fault: Error {
        var line: Int?
        var reason: KeyRingFileError.Reason
    }

    private(set) var lines: [Line]
    private(set) var ring: KeyRing

    /// Makes the text of a new ring.
    init(key: SealingKey) throws(KeyRingError) {
        lines = [
            .comment(Secret("# The keys of refresh-worker. Anyone who reads them can open every stored token;")),
            .comment(Secret("# without them every stored token is lost. One key per line: id, key,")),
            .comment(Secret("# and \"pending\" before it is used or \"retired\" and the time after that.")),
            .key(key),
        ]
        ring = try KeyRing(keys: [key])
    }

    init(text: Secret) throws(Fault) {
        lines = try text.withBytes { (span) throws(Fault) in try Self.lines(of: span) }
        do throws(KeyRingError) {
            ring = try KeyRing(keys: Self.keys(in: lines))
        } catch {
            throw Self.fault(error, in: lines)
        }
    }

    var text: Secret {
        let newline = Secret("\n")
        return Secret(
            concatenating: lines.flatMap { line in
                switch line {
                case .comment(let comment): [comment, newline]
                case .key(let key): [key.line, newline]
                }
            }
        )
    }

    /// Adds a key after all others.
    mutating func append(_ key: SealingKey) throws(Fault) {
        try replaceLines(with: lines + [.key(key)])
    }

    /// Retires a key: it opens but never seals again.
    ///
    /// A key that is already retired keeps its time.
    mutating func retire(_ id: KeyID, at now: Timestamp) throws(Fault) {
        let (index, key) = try find(id)
        guard id != ring.sealingKeyID else { throw Fault(reason: .sealingKey(id)) }
        if case .retired(let since) = key.role, since <= now { return }
        var lines = lines
        lines[index] = .key(SealingKey(id: id, material: key.material, role: .retired(since: now)))
        try replaceLines(with: lines)
    }

    /// Makes a key the first, with the active role, so that it seals.
    mutating func promote(_ id: KeyID) throws(Fault) {
        let (index, key) = try find(id)
        var lines = lines
        lines.remove(at: index)
        let front = lines.firstIndex { Self.key(on: $0) != nil } ?? lines.endIndex
        lines.insert(.key(SealingKey(id: id, material: key.material, role: .active)), at: front)
        try replaceLines(with: lines)
    }

    mutating func remove(_ id: KeyID) throws(Fault) {
        let (index, _) = try find(id)
        guard id != ring.sealingKeyID else { throw Fault(reason: .sealingKey(id)) }
        var lines = lines
        lines.remove(at: index)
        try replaceLines(with: lines)
    }

    private mutating func replaceLines(with lines: [Line]) throws(Fault) {
        do throws(KeyRingError) {
            ring = try KeyRing(keys: Self.keys(in: lines))
        } catch {
            throw Self.fault(error, in: lines)
        }
        self.lines = lines
    }

    private func find(_ id: KeyID) throws(Fault) -> (index: Int, key: SealingKey) {
        for (index, line) in lines.enumerated() {
            if let key = Self.key(on: line), key.id == id { return (index, key) }
        }
        throw Fault(reason: .unknownKey(id))
    }

    private static func key(on line: Line) -> SealingKey? {
        guard case .key(let key) = line else { return nil }
        return key
    }

    private static func keys(in lines: [Line]) -> [SealingKey] { lines.compactMap(key(on:)) }

    private static func fault(_ error: KeyRingError, in lines: [Line]) -> Fault {
        switch error {
        case .noSealingKey:
            Fault(reason: .noSealingKey)
        case .duplicateKey(let id):
            Fault(line: lines.lastIndex { key(on: $0)?.id == id }.map { $0 + 1 }, reason: .duplicateKey(id))
        }
    }
}

extension KeyRingDocument {
    private static func lines(of span: RawSpan) throws(Fault) -> [Line] {
        var lines: [Line] = []
        var start = 0
        while start < span.byteCount {
            var end = start
            while end < span.byteCount, span.byte(at: end) != UInt8(ascii: "\n") { end += 1 }
            do throws(SealingKey.LineFault) {
                lines.append(try line(span.extracting(start..<end)))
            } catch {
                throw Fault(line: lines.count + 1, reason: .malformedLine(error.rawValue))
            }
            start = end + 1
        }
        return lines
    }

    private static func line(_ span: RawSpan) throws(SealingKey.LineFault) -> Line {
        let words = words(of: span)
        guard let first = words.first, span.byte(at: first.lowerBound) != UInt8(ascii: "#") else {
            return .comment(Secret(copying: span))
        }
        return .key(try SealingKey(words: words, of: span))
    }

    /// Returns the ranges of the words between blanks.
    ///
    /// A carriage return from an editor counts as a blank.
    private static func words(of span: RawSpan) -> [Range<Int>] {
        var words: [Range<Int>] = []
        var start: Int?
        for offset in 0..<span.byteCount {
            let isBlank = [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains(span.byte(at: offset))
            if let begun = start, isBlank {
                words.append(begun..<offset)
                start = nil
            } else if start == nil, !isBlank {
                start = offset
            }
        }
        if let start { words.append(start..<span.byteCount) }
        return words
    }
}
