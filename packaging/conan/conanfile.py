"""OpenBNNS from the clone that this file lies in, by Conan 2:

  conan create packaging/conan

Highway comes from Conan, or, with -o "openbnns/*:system_highway=True", from the system (Debian: libhwy-dev)."""
import os
import shutil

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class OpenBNNS(ConanFile):
    name = "openbnns"
    license = "Apache-2.0"
    description = "The classic BNNS neural-network API on Linux"
    topics = ("neural-network", "training", "bnns", "accelerate")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "system_highway": [True, False]}
    default_options = {"shared": True, "system_highway": False}

    @property
    def _clone(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._clone, "CMakeLists.txt"))
        self.version = text.split("project(OpenBNNS VERSION ")[1].split()[0]

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            shutil.copy(os.path.join(self._clone, name), self.export_sources_folder)  # Conan's copy would search build/ too
        for folder in ("cmake", "include", "src", "docs", "examples"):
            copy(self, "*", os.path.join(self._clone, folder), os.path.join(self.export_sources_folder, folder))

    def requirements(self):
        if not self.options.system_highway:
            self.requires("highway/[>=1.0.3]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(BNNS_TESTS=False, BNNS_TOOLS=False, BNNS_MPI="OFF", BUILD_SHARED_LIBS=bool(self.options.shared))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The CMake package that is installed has the targets; Conan is to add none of its own.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/OpenBNNS"]
        self.cpp_info.libs = ["bnns"]
