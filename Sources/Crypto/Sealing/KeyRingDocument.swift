import Base

/// The text of a key ring's file: comments and keys, one per line, in order.
struct KeyRingDocument {
    /// A key with its line, or a comment or an empty line as it is. Both are secret, because a comment can be a former
    /// key.
    struct Line {
        let text: Secret
        let key: RingKey?

        init(_ key: RingKey) {
            text = key.line
            self.key = key
        }

        init(comment text: Secret) {
            self.text = text
            key = nil
        }
    }

    /// The path of the file, for errors.
    private let path: String
    private(set) var lines: [Line]
    private(set) var ring: KeyRing

    /// Makes the text of a new ring.
    init(key: RingKey, path: String) throws(FileError) {
        self.path = path
        lines = [
            Line(comment: Secret("# The keys of refresh-worker. Anyone who reads them can open every stored token;")),
            Line(comment: Secret("# without them every stored token is lost. One key per line: id, key,")),
            Line(comment: Secret("# and \"pending\" before it is used or \"retired\" and the time after that.")),
            Line(comment: Secret("# A key with the word \"binding\" does not seal: refresh tokens are bound to it.")),
            Line(key),
        ]
        ring = try KeyRing(keys: [key], path: path)
    }

    init(text: Secret, path: String) throws(FileError) {
        self.path = path
        lines = try text.withBytes { (span) throws(FileError) in try Self.lines(of: span, path: path) }
        ring = try KeyRing(keys: lines.compactMap(\.key), path: path)
    }

    var text: Secret {
        let newline = Secret("\n")
        return Secret(concatenating: lines.flatMap { [$0.text, newline] })
    }

    /// Adds a key after all others.
    mutating func append(_ key: RingKey) throws(FileError) {
        try replaceLines(with: lines + [Line(key)])
    }

    /// Adds a binding key before the other binding keys, so that new tokens are bound to it.
    mutating func insert(binding key: RingKey) throws(FileError) {
        let first = lines.firstIndex { $0.key?.isBinding == true } ?? lines.endIndex
        var lines = lines
        lines.insert(Line(key), at: first)
        try replaceLines(with: lines)
    }

    /// Retires a key: it neither seals nor binds any more.
    ///
    /// A key that is already retired keeps its time. The file has whole seconds, so the ring has no finer time.
    mutating func retire(_ id: KeyID, at now: Timestamp) throws(FileError) {
        let (index, key) = try find(id, mayBeSealing: false)
        if case .retired(let since) = key.role, since <= now { return }
        var lines = lines
        let second = Timestamp(secondsSince1970: now.milliseconds / 1000)
        lines[index] = Line(key.with(role: .retired(since: second)))
        try replaceLines(with: lines)
    }

    /// Makes a key the first, with the active role, so that it seals.
    mutating func promote(_ id: KeyID) throws(FileError) {
        let (index, key) = try find(id)
        guard !key.isBinding else { throw FileError(keyFile: path, "has key \(id) for binding: it cannot seal") }
        var lines = lines
        lines.remove(at: index)
        let first = lines.firstIndex { $0.key != nil } ?? lines.endIndex
        lines.insert(Line(key.with(role: .active)), at: first)
        try replaceLines(with: lines)
    }

    mutating func remove(_ id: KeyID) throws(FileError) {
        var lines = lines
        lines.remove(at: try find(id, mayBeSealing: false).index)
        try replaceLines(with: lines)
    }

    private mutating func replaceLines(with lines: [Line]) throws(FileError) {
        ring = try KeyRing(keys: lines.compactMap(\.key), path: path)
        self.lines = lines
    }

    private func find(_ id: KeyID, mayBeSealing: Bool = true) throws(FileError) -> (index: Int, key: RingKey) {
        for (index, line) in lines.enumerated() {
            guard let key = line.key, key.id == id else { continue }
            guard mayBeSealing || id != ring.sealingKeyID else {
                throw FileError(keyFile: path, "still seals with key \(id): promote another key first")
            }
            return (index, key)
        }
        throw FileError(keyFile: path, "has no key \(id): run: refresh-worker keys list")
    }
}

extension KeyRingDocument {
    private static func lines(of span: RawSpan, path: String) throws(FileError) -> [Line] {
        var lines: [Line] = []
        var start = 0
        while start < span.byteCount {
            var end = start
            while end < span.byteCount, span.byte(at: end) != UInt8(ascii: "\n") { end += 1 }
            let number = lines.count + 1
            let line = try line(span.extracting(start..<end)) { expectation in
                FileError(
                    keyFile: path,
                    line: number,
                    "\(expectation): fix the line, or restore the file from a backup"
                )
            }
            if let id = line.key?.id, lines.contains(where: { $0.key?.id == id }) {
                throw FileError(keyFile: path, line: number, duplicate: id)
            }
            lines.append(line)
            start = end + 1
        }
        return lines
    }

    private static func line(_ span: RawSpan, malformed: (String) -> FileError) throws(FileError) -> Line {
        let words = words(of: span)
        guard let first = words.first, span.byte(at: first.lowerBound) != UInt8(ascii: "#") else {
            return Line(comment: Secret(copying: span))
        }
        return Line(try RingKey(words: words, of: span, malformed: malformed))
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
