import Base
import CProcess
import Glibc

/// A descriptor that is closed when its owner is destroyed.
struct Descriptor: ~Copyable {
    /// The two ends of a pipe.
    struct Pipe: ~Copyable {
        let reading: Descriptor
        let writing: Descriptor
    }

    let number: Int32

    /// Takes the result of a system call, which is negative if the call failed.
    init(_ number: Int32, of call: String) throws(SystemCallError) {
        guard number >= 0 else { throw SystemCallError(call: call, code: errno) }
        self.number = number
    }

    init(owning number: Int32) { self.number = number }

    deinit { close(number) }

    /// Makes a pipe whose reading end never blocks. The other end belongs to a program that might not expect that.
    static func pipe() throws(SystemCallError) -> Pipe {
        var ends: [Int32] = [-1, -1]
        guard unsafe refresh_worker_pipe(&ends) == 0 else { throw SystemCallError(call: "pipe2", code: errno) }
        let pipe = Pipe(
            reading: try Descriptor(ends[0], of: "pipe2"),
            writing: try Descriptor(ends[1], of: "pipe2")
        )
        guard fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 else { throw SystemCallError(call: "fcntl", code: errno) }
        return pipe
    }
}
