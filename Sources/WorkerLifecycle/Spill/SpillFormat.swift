package import Secrets

/// The format of a spill file: a first line, then sealed results, each after its length in four bytes.
///
/// A length of zero ends the file, so that it can be written into space that was reserved before.
package enum SpillFormat {
    static let head = Array("refresh-worker results 1\n".utf8)
    private static let longestResult = 1 << 20

    /// The content of a file.
    package struct Content: Equatable {
        package var results: [SealedSecret] = []
        /// `true` if a part of the file cannot be read.
        package var isDamaged = false
    }

    static func bytes(of results: [SealedSecret]) -> [UInt8] {
        var bytes: [UInt8] = []
        for result in results {
            let count = UInt32(result.bytes.count)
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) }
            bytes += result.bytes
        }
        return bytes
    }

    package static func read(_ bytes: [UInt8]) -> Content {
        var content = Content()
        guard bytes.starts(with: head) else {
            // Reserved space that is still empty.
            content.isDamaged = bytes.contains { $0 != 0 }
            return content
        }
        var rest = bytes.dropFirst(head.count)
        while !rest.isEmpty {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 4, length > 0 else {
                content.isDamaged = content.isDamaged || rest.contains { $0 != 0 }
                return content
            }
            rest = rest.dropFirst(4)
            guard length <= longestResult, length <= rest.count else {
                content.isDamaged = true
                return content
            }
            do throws(SealError) {
                content.results.append(try SealedSecret(bytes: Array(rest.prefix(length))))
            } catch {
                content.isDamaged = true
            }
            rest = rest.dropFirst(length)
        }
        return content
    }
}
