// SPDX-License-Identifier: MIT
// What a project of the SDK has without saying so.
global using System;
global using System.Collections.Generic;
global using System.IO;
global using System.Linq;
global using System.Threading;
