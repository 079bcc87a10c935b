private import Glibc
import Secrets

extension FileReader {
    /// Far more than any configuration; a database or a device given by mistake is not read into memory.
    private static let sizeLimit = 1 << 20

    /// The files of the machine.
    ///
    /// Reads block, so this belongs to the start and to the thread that reloads.
    static let system = FileReader(
        read: { path throws(Failure) in try readWhole(path) },
        readPrivate: { path throws(Failure) in
            do throws(PrivateFileError) {
                return try Secret.read(privateFile: path)
            } catch {
                throw Failure(reason: "\(error)", isMissing: false)
            }
        },
        exists: { path in unsafe access(path, F_OK) == 0 }
    )

    private static func readWhole(_ path: String) throws(Failure) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(errorNumber: errno) }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw Failure(errorNumber: errno) }
            guard count > 0 else { return content }
            content += buffer.prefix(count)
            guard content.count <= sizeLimit else {
                throw Failure(reason: "is larger than 1 MiB", isMissing: false)
            }
        }
    }
}

extension FileReader.Failure {
    init(errorNumber: Int32) {
        let reason = unsafe String(cString: strerror(errorNumber))
        self.init(reason: "cannot be read: \(reason)", isMissing: errorNumber == ENOENT)
    }
}
