import Base
import Glibc
import Synchronization

/// A file, or standard input, read in pieces from beginning to end.
final class InputFile: Sendable {
    private static let pieceSize = 256 * 1024

    private let descriptor: Int32
    /// The name in messages.
    private let name: String
    private let isStandardInput: Bool
    private let queue = BlockingCallQueue(label: "refresh-worker.input")
    /// The size of a regular file in bytes, or `nil` for pipes and terminals.
    private let size: Int?
    private let bytesRead = Atomic(0)

    /// Opens the file, where `-` is standard input.
    ///
    /// It blocks while a named pipe does not have a writer, which is harmless this early.
    init(path: String) throws(CommandError) {
        isStandardInput = path == "-"
        name = isStandardInput ? "standard input" : "\(DisplayedText(path))"
        descriptor = isStandardInput ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(name, call: "open", code: errno) }
        var status = stat()
        let isRegular = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        size = isRegular ? Int(status.st_size) : nil
    }

    deinit {
        if !isStandardInput { close(descriptor) }
    }

    /// The fraction of the file that was read, between 0 and 1, or `nil` if its size is unknown.
    var fractionRead: Double? {
        guard let size, size > 0 else { return nil }
        // The file might grow while it is read.
        return min(1, Double(bytesRead.load(ordering: .relaxed)) / Double(size))
    }

    /// Returns the next bytes, or none at the end.
    func next() async throws -> [UInt8] {
        let piece = try await queue.run { try self.read() }
        bytesRead.add(piece.count, ordering: .relaxed)
        return piece
    }

    private func read() throws(CommandError) -> [UInt8] {
        while true {
            var code: Int32 = 0
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, filled in
                let count = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                code = count < 0 ? errno : 0
                filled = max(0, count)
            }
            if code == 0 { return piece }
            guard code == EINTR else { throw Self.failure(name, call: "read", code: code) }
        }
    }

    private static func failure(_ name: String, call: String, code: Int32) -> CommandError {
        let reason = SystemCallError(call: call, code: code)
        return CommandError(.inputUnreadable, "\(name) cannot be read: \(reason)")
    }
}
