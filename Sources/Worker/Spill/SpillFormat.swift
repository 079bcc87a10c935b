package import Crypto

/// The format of a spill file: a first line, sealed results, each after its length in four bytes, and the end.
///
/// The end is a length of zero, the number of results and a last line. Without it, a part of the file is missing. What
/// follows it does not count, so that the file can be written into space that was reserved before.
package enum SpillFormat {
    static let head = Array("refresh-worker results 2\n".utf8)
    /// The first line of earlier versions of this program, which wrote only the zero at the end.
    private static let headWithoutEnd = Array("refresh-worker results 1\n".utf8)
    private static let lastLine = Array("end\n".utf8)
    private static let maximumResultLength = 1 << 20

    /// The content of a file.
    package struct Content: Equatable {
        package var results: [SealedSecret] = []
        /// `true` if a part of the file cannot be read.
        package var isDamaged = false
    }

    static func bytes(of results: [SealedSecret]) -> [UInt8] {
        results.flatMap { number($0.bytes.count) + $0.bytes }
    }

    static func end(after count: Int) -> [UInt8] {
        number(0) + number(count) + lastLine
    }

    private static func number(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    package static func read(_ bytes: [UInt8]) -> Content {
        var content = Content()
        let hasEnd = bytes.starts(with: head)
        guard hasEnd || bytes.starts(with: headWithoutEnd) else {
            // Reserved space that is still empty.
            content.isDamaged = bytes.contains { $0 != 0 }
            return content
        }
        var rest = bytes.dropFirst(head.count)
        var count = 0
        while rest.count >= 4 {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard length > 0, length <= min(maximumResultLength, rest.count - 4) else { break }
            do throws(SealError) {
                content.results.append(try SealedSecret(bytes: Array(rest.dropFirst(4).prefix(length))))
            } catch {
                content.isDamaged = true
            }
            rest = rest.dropFirst(4 + length)
            count += 1
        }
        let isComplete = hasEnd ? rest.starts(with: end(after: count)) : rest.allSatisfy { $0 == 0 }
        content.isDamaged = content.isDamaged || !isComplete
        return content
    }
}
