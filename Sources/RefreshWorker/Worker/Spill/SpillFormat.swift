import Crypto
import Storage

/// The format of a spill file: a first line with the id of its database, sealed results, each after its length in four
/// bytes, and the end.
///
/// The end is a length of zero, the number of results and a last line. Without it, a part of the file is missing. What
/// follows it does not count, so that the file can be written into space that was reserved before.
enum SpillFormat {
    private static let firstWords = "refresh-worker results 3 "
    /// A file whose first line is longer than this is no spill file.
    private static let maximumHeadLength = 128
    private static let lastLine = Array("end\n".utf8)
    private static let maximumResultLength = 1 << 20

    static let maximumSize = 64 << 20

    static func head(of database: DatabaseID) -> [UInt8] { Array("\(firstWords)\(database)\n".utf8) }

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
        /// The database whose worker wrote the file, or `nil` if this cannot be read.
        var database: DatabaseID?
        var results: [SealedSecret] = []
        /// `true` if a part of the file cannot be read.
        var isDamaged = false
    }

    static func read(_ bytes: [UInt8]) -> Content {
        var content = Content()
        guard let database = database(in: bytes) else {
            // Reserved space that is still empty.
            content.isDamaged = bytes.contains { $0 != 0 }
            return content
        }
        content.database = database
        var rest = bytes.dropFirst(head(of: database).count)
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

    /// Reads the first line.
    private static func database(in bytes: [UInt8]) -> DatabaseID? {
        guard let end = bytes.prefix(maximumHeadLength).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let line = String(decoding: bytes[..<end], as: UTF8.self)
        guard line.hasPrefix(firstWords) else { return nil }
        return DatabaseID(String(line.dropFirst(firstWords.utf8.count)))
    }
}
