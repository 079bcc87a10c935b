import Crypto

/// The format of a spill file: a first line, sealed results, each after its length in four bytes, and the end.
///
/// The end is a length of zero, the number of results and a last line. Without it, a part of the file is missing. What
/// follows it does not count, so that the file can be written into space that was reserved before.
enum SpillFormat {
    static let head = Array("refresh-worker results 2\n".utf8)
    private static let lastLine = Array("end\n".utf8)
    private static let maximumResultLength = 1 << 20

    static let maximumSize = 64 << 20

    static func bytes(of results: [SealedSecret]) -> [UInt8] {
        results.flatMap { number($0.bytes.count) + $0.bytes }
    }

    static func end(after count: Int) -> [UInt8] {
        number(0) + number(count) + lastLine
    }

    private static func number(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// What a spill file holds.
    struct Content: Sendable {
        var results: [SealedSecret] = []
        /// `true` if a part of the file cannot be read.
        var isDamaged = false
    }

    static func read(_ bytes: [UInt8]) -> Content {
        var content = Content()
        guard bytes.starts(with: head) else {
            // Reserved space that is still empty.
            content.isDamaged = bytes.contains { $0 != 0 }
            return content
        }
        var rest = bytes.dropFirst(head.count)
        var count = 0
        while rest.count >= 4 {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard length > 0, length <= min(maximumResultLength, rest.count - 4) else { break }
            do throws(CryptoError) {
                content.results.append(try SealedSecret(bytes: Array(rest.dropFirst(4).prefix(length))))
            } catch {
                content.isDamaged = true
            }
            rest = rest.dropFirst(4 + length)
            count += 1
        }
        content.isDamaged = content.isDamaged || !rest.starts(with: end(after: count))
        return content
    }
}
