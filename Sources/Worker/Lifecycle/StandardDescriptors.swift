private import Glibc

/// The three descriptors that every program expects to be open.
package enum StandardDescriptors {
    /// Opens /dev/null for each of them that is closed.
    ///
    /// Otherwise the next file or socket would get the number, and messages for standard error would be written into
    /// it. Input cannot be read and output cannot be written: a token written to /dev/null must not look delivered.
    /// Standard error accepts everything, so that a failure keeps its exit code.
    package static func fill() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            let flags =
                switch descriptor {
                case STDIN_FILENO: O_WRONLY
                case STDOUT_FILENO: O_RDONLY
                default: O_RDWR
                }
            // All lower numbers are open, so the lowest free number is the missing one.
            guard unsafe open("/dev/null", flags) == descriptor else { exit(ExitCode.internalFailure.rawValue) }
        }
    }
}
