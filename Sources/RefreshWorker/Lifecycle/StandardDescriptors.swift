private import Glibc

/// The three descriptors that every program expects to be open.
enum StandardDescriptors {
    /// Opens /dev/null on each of them that the program was started without.
    ///
    /// Else the next file or socket would get the number, and what is meant for standard error would be written into it.
    /// Input cannot be read and output cannot be written: a token that is written to nowhere must not look delivered.
    /// Standard error takes what comes, so that a failure keeps its exit code.
    static func fill() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            let flags =
                switch descriptor {
                case STDIN_FILENO: O_WRONLY
                case STDOUT_FILENO: O_RDONLY
                default: O_RDWR
                }
            // The lowest free number is the one that is missing, as all below it are open.
            guard unsafe open("/dev/null", flags) == descriptor else { exit(ExitCode.internalFailure.rawValue) }
        }
    }
}
